"""Which cases a test runs with, and which of them in the quick tier.

A family's mathematics is tested for every case. What GPflow does with it (copies, wrappers,
optimisers, caches) is code that is shared by all cases of a class, or by all operators of a kind:
there a representative stands for the class, and one case for the kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from .cases import CASES, FIRST_AND_LAST_KIND, ONE_OF_EACH_KIND, REPRESENTATIVES, Case


def param(*values: Any, id: str, quick: bool = True) -> Any:
    """Parameters of a test; if not quick, of one that is in the full tier alone."""
    return pytest.param(*values, id=id, marks=() if quick else pytest.mark.full)


def in_turn(
    selected: Iterable[Case], options: Iterable[Any], quick: Iterable[Case], first: int = 0
) -> list[tuple[Case, Any, bool]]:
    """Each case with one of the options in turn, and one of each kind of operator with all.

    So each option meets each kind, and several classes; that a class would meet an option in a way
    that its kind does not is excluded by the design, which knows of operators alone.

    :param first: Which option the first case has.
    :return: Cases, options, and whether this is in the quick tier: those of ``quick`` with the
        option whose turn it is.
    """
    options, quick = list(options), tuple(quick)
    return [
        (case, option, case in quick and turn)
        for k, case in enumerate(selected)
        for i, option in enumerate(options)
        if (turn := (i - k - first) % len(options) == 0) or case in ONE_OF_EACH_KIND
    ]


def cases(selected: Iterable[Case], quick: Iterable[Case]) -> pytest.MarkDecorator:
    """A test for each of the selected cases; in the quick tier, for those of ``quick``."""
    return pytest.mark.parametrize(
        "case", [param(case, id=case.name, quick=case in quick) for case in selected]
    )


each_class = cases(REPRESENTATIVES, quick=REPRESENTATIVES)
each_class_quick_each_kind = cases(REPRESENTATIVES, quick=ONE_OF_EACH_KIND)
every_case_quick_each_class = cases(CASES, quick=REPRESENTATIVES)
every_case_quick_each_kind = cases(CASES, quick=ONE_OF_EACH_KIND)
each_class_quick_two_kinds = cases(REPRESENTATIVES, quick=FIRST_AND_LAST_KIND)
