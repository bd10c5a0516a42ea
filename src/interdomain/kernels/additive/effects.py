"""Effects: which columns act together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..._arguments import as_integer, items, short

_RULE = "tuples of columns, 'main' or 'pairs'"


def checked_effects(effects: Any, names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """The columns of each effect, increasing; effects of few columns first.

    :param effects: As of :class:`interdomain.kernels.Additive`.
    :param names: Of the columns.
    :raises ValueError: If they are something else, or one is there twice.
    """
    if effects is None:
        effects = ["main"]
    listed = [effects] if isinstance(effects, str) else items("effects", effects, _RULE)
    found: list[tuple[int, ...]] = []
    for effect in listed:
        if isinstance(effect, str) and effect in ("main", "pairs"):
            order = 1 if effect == "main" else 2
            found += itertools.combinations(range(len(names)), order)
        else:
            single = isinstance(effect, str) or as_integer(effect) is not None
            entries = [effect] if single else items("effects", effect, _RULE)
            found.append(tuple(sorted(column_number("effects", one, names) for one in entries)))
    for effect in found:
        if not effect or len(set(effect)) < len(effect):
            raise ValueError(
                f"effects must be of different columns, found {_named(effect, names)}; the "
                "constant is always there, and no column is in an effect twice."
            )
    if not found:
        raise ValueError(f"effects must be {_RULE}, found none.")
    twice = [effect for effect in found if found.count(effect) > 1]
    if twice:
        raise ValueError(f"effects must be different, found {_named(twice[0], names)} twice.")
    return tuple(sorted(found, key=lambda effect: (len(effect), effect)))


def column_number(argument: str, column: Any, names: Sequence[str]) -> int:
    """The number of a column that is given by its number or its name.

    :raises ValueError: If there is no such column.
    """
    number = as_integer(column)
    if number is not None and 0 <= number < len(names):
        return number
    if isinstance(column, str) and column in names:
        return names.index(column)
    raise ValueError(
        f"{argument} must name columns by numbers from 0 to {len(names) - 1} or by their names, "
        f"found {short(column)}; the columns are {', '.join(names)}."
    )


def effect_name(effect: Sequence[int], names: Sequence[str]) -> str:
    """Such as ``age x cement``."""
    return " x ".join(names[column] for column in effect)


def _named(effect: Sequence[int], names: Sequence[str]) -> str:
    return repr(effect_name(effect, names)) if effect else "an effect of none"
