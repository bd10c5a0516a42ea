"""What a race has found: how well each model predicted after how many seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

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
    """

    model: Any
    trace: Sequence[Point]
    error: str | None


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
        width = max(len("model"), *map(len, self.entries))
        clock = "wall time" if self.clock == "wall" else "the processors"
        times = "".join(f"{f'{seconds:g} s':>11}" for seconds in self.times)
        lines = [
            f"{self.num_rows:,} rows, {self.num_held_out:,} held out: their mean log density after "
            f"seconds of {clock}",
            f"{'model':<{width}}{times}{'in the end':>24}{'RMSE':>9}",
        ]
        failed = [name for name, entry in self.entries.items() if not entry.trace]
        for name in (*self.ranking, *failed):
            entry = self.entries[name]
            line = f"{name:<{width}}"
            if entry.trace:
                points = [_at(entry.trace, seconds) for seconds in self.times]
                line += "".join(f"{f'{p[1]:.4f}' if p else '-':>11}" for p in points)
                passed, density, rmse = entry.trace[-1]
                end = f"{density:.4f} ({passed:.1f} s)"
                line += f"{end:>24}{rmse:>9.4f}"
            lines.append(line + ("" if entry.error is None else f"  failed: {entry.error}"))
        return "\n".join(lines)
