"""The results of a race of models, and of a recommendation after it."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from .. import fit
from .._progress import aligned, bars

if TYPE_CHECKING:
    from .candidates import Candidate
    from .prepared import PreparedData

Clock: TypeAlias = Literal["wall", "cpu"]

Point: TypeAlias = tuple[float, float, float]
"""The seconds of a model's training, by the clock of the race; the mean log density of the held-out
rows; and the root mean squared error of the predicted means of Y. The error is NaN for
probabilities of several classes, and if Y has columns that are not values of f."""


class RaceEntry(NamedTuple):
    """One model in a :func:`~interdomain.race`.

    :ivar model: The model at the end of the race; None if it could not be built.
    :ivar trace: The evaluations of the model, in order of time.
    :ivar error: The reason of a failure; None without a failure.
    :ivar num_rows: The number of training rows of the model; None if it is that of the race.
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
    """The result of :func:`~interdomain.race`; ``str`` returns a table.

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
        """The names of the models by log density at the last time, best first; then models that
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
        table = [["model", *["rows"] * (few < many), *times, "after training", "RMSE"]]
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


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The result of :func:`.recommend`; ``str`` returns a report.

    :ivar name: The recommended candidate.
    :ivar sentences: Remarks on the data and on the candidates.
    :ivar race: The race of the small versions for which there was time.
    :ivar candidates: All candidates at full size, by name.
    :ivar seconds: The seconds of the whole call, by the chosen clock.
    :ivar learnt: False if no candidate predicts held-out rows clearly better than the mean of Y.
    :ivar data: The rows on the scales of the models.
    """

    name: str
    sentences: tuple[str, ...]
    race: Race = field(repr=False)
    candidates: Mapping[str, Candidate] = field(repr=False)
    seconds: float
    learnt: bool = True
    data: PreparedData = field(repr=False, kw_only=True)

    def fit(self, *, progress: bool = True) -> Any:
        """Make the recommended model at full size, and train it on all rows, as the program does.

        :return: The GPflow model, of rows on the scales of ``data.scaler`` and, under Gaussian
            noise, of Y in standard deviations from its mean, ``data.units``.
        """
        build, training = self.candidates[self.name].entrant
        with bars(shown=progress):
            rows: Any = self.data.rows
            model = build(rows)
            if training is not None:
                fit(model, *[rows] * ("batch_size" in training), **training)
        return model

    @property
    def code(self) -> str:
        """The program that makes and trains the recommended model at full size, from X, Y and
        ``likelihood`` as they were passed. It ends with a function ``predict(X_new)``, which
        returns the mean and the standard deviation of y in the units of Y."""
        return self.candidates[self.name].code

    def __str__(self) -> str:
        what = f"{self.name}: {self.candidates[self.name].why}"
        head = f"Take {what}" if self.learnt else f"Nothing was learnt. The best was {what}"
        parts = [head, *self.sentences, *([str(self.race)] if self.race.entries else [])]
        return "\n\n".join([*parts, self.code])
