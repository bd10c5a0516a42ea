"""What a race of models found: how well each predicted, and when."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from .._progress import aligned

Clock: TypeAlias = Literal["wall", "cpu"]

Point: TypeAlias = tuple[float, float, float]
"""The seconds since the race of a model started, by its clock and without predictions; the mean log
density of the held-out rows; and the root mean squared error of the predicted means of Y, which is
NaN if these are probabilities of several classes, or a column of Y says something about the others.
"""


class RaceEntry(NamedTuple):
    """One model in a :func:`~interdomain.race`.

    :ivar model: The model at the end of the race; None if it could not be built.
    :ivar trace: How well it predicted, in order of time.
    :ivar error: Why it failed; None if it did not.
    :ivar num_rows: The number of training rows of the model; None for those of the race.
    """

    model: Any
    trace: Sequence[Point]
    error: str | None
    num_rows: int | None = None


def _at(trace: Sequence[Point], seconds: float) -> Point | None:
    """The last point of a trace up to this time (plus 5%); None if there is none."""
    points = [point for point in trace if point[0] <= 1.05 * seconds]
    return points[-1] if points else None


@dataclass(frozen=True, eq=False)
class Race:
    """The result of :func:`~interdomain.race`; ``str`` makes a table of it.

    :ivar entries: The results of all models, by name, in the order of the race.
    :ivar times: The times at which models are evaluated, in seconds of the clock.
    :ivar clock: "wall" or "cpu".
    :ivar num_rows: The number of training rows.
    :ivar num_held_out: The number of held-out rows, for log densities and errors.
    """

    entries: Mapping[str, RaceEntry]
    times: tuple[float, ...]
    clock: Clock
    num_rows: int
    num_held_out: int

    @property
    def ranking(self) -> tuple[str, ...]:
        """The names of the models by log density at the last time, best first; then those that
        were ready too late. Models that were never evaluated are left out."""
        keys = {}
        for name, entry in self.entries.items():
            if entry.trace:
                point = _at(entry.trace, self.times[-1])
                keys[name] = point is None, -(point or entry.trace[-1])[1]
        return tuple(sorted(keys, key=keys.__getitem__))

    def __str__(self) -> str:
        numbers = {name: entry.num_rows or self.num_rows for name, entry in self.entries.items()}
        few, many = (choose(numbers.values(), default=self.num_rows) for choose in (min, max))
        clock = "wall time" if self.clock == "wall" else "the processors"
        times = [f"{seconds:g} s" for seconds in self.times]
        table = [["model", *["rows"] * (few < many), *times, "in the end", "RMSE"]]
        failed = [name for name, entry in self.entries.items() if not entry.trace]
        errors = [""]
        for name in (*self.ranking, *failed):
            entry = self.entries[name]
            row = [name, *[f"{numbers[name]:,}"] * (few < many)]
            if entry.trace:
                points = [_at(entry.trace, seconds) for seconds in self.times]
                passed, density, rmse = entry.trace[-1]
                row += [f"{point[1]:.4f}" if point else "-" for point in points]
                row += [f"{density:.4f} ({passed:.1f} s)", f"{rmse:.4f}"]
            table.append(row + [""] * (len(table[0]) - len(row)))
            errors.append("" if entry.error is None else f"  failed: {entry.error}")
        head = (
            f"{few:,} {f'to {many:,} ' * (few < many)}rows, {self.num_held_out:,} held out: their "
            f"mean log density after seconds of {clock}"
        )
        return "\n".join([head, *map(operator.add, aligned(table), errors)])
