"""Trains several models for the same time, and compares their predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.models import BayesianModel
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

from .._arguments import choice, instance, integer, number
from .._progress import progress_bar
from ..models import DualSVGP, StructuredSGPR
from ..plotting.axes import new_axes
from ..serving import predict_in_batches
from ..training.data import checked_arrays, num_functions
from ..training.fitting import fit
from ..training.results import StopFit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Clock: TypeAlias = Literal["wall", "cpu"]

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
"""By what an argument ``clock`` says."""

_SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the seconds: when models are looked at, if nobody says when."""

_HELD_OUT, _MOST_HELD_OUT = 10, 10_000
"""One row of so many, and no more, is held out."""

_LEAST_ROWS = 20

_BATCH_SIZE = 1_000

_STEPS = 10**9


@dataclass(frozen=True)
class Entrant:
    """A model of a :func:`race`, and how it is trained.

    :ivar build: a function that takes the training rows (X ``[N, D]``, Y ``[N, P]``) and returns a
        new model of them.
    :ivar arguments: arguments of :func:`interdomain.fit`, which trains it.
    :ivar trained: whether the model that ``build`` returns is already trained, as with
        :func:`fit_additive`.
    """

    build: Callable[[RegressionData], Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    trained: bool = False


@dataclass(frozen=True)
class RacePoint:
    """How well a model predicted at one time.

    :ivar seconds: the time since its race started, by the race's clock, without predictions.
    :ivar log_density: the mean log density of the held-out rows.
    :ivar rmse: the root mean squared error of the predicted means of Y; NaN if these are
        probabilities of several classes, or a column of Y says something about the others.
    """

    seconds: float
    log_density: float
    rmse: float


@dataclass(frozen=True, eq=False)
class RaceEntry:
    """One model in a :func:`race`.

    :ivar name: its name.
    :ivar model: the model at the end of the race; None if it could not be built.
    :ivar trace: how well it predicted, in order of time.
    :ivar startup_seconds: the seconds for building, tracing and the first step, which are part of
        the times in the trace; for a model that is evaluated only after its training, the seconds
        for building it.
    :ivar error: why it failed; None if it did not.
    """

    name: str
    model: Any = field(repr=False)
    trace: tuple[RacePoint, ...]
    startup_seconds: float
    error: str | None

    def at(self, seconds: float) -> RacePoint | None:
        """The last point of the trace up to this time (plus 5%); None if there is none."""
        points = [point for point in self.trace if point.seconds <= 1.05 * seconds]
        return points[-1] if points else None


@dataclass(frozen=True, eq=False)
class Race:
    """The result of :func:`race`; ``str`` makes a table of it.

    :ivar entries: the results of all models, by name, in the order of the race.
    :ivar times: the times at which models are evaluated, in seconds of the clock.
    :ivar clock: "wall" or "cpu".
    :ivar num_rows: the number of training rows.
    :ivar num_held_out: the number of held-out rows, for log densities and errors.
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

        def key(entry: RaceEntry) -> tuple[bool, float]:
            point = entry.at(self.times[-1])
            return point is None, -(point or entry.trace[-1]).log_density

        arrived = [entry for entry in self.entries.values() if entry.trace]
        return tuple(entry.name for entry in sorted(arrived, key=key))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the log density of held-out rows against seconds, a line or a point for each model.

        The best model is first in the legend. A model that failed before it was evaluated is not
        drawn. Needs matplotlib (the extra ``plot``).

        :param ax: where to draw; a new figure by default.
        """
        ax = new_axes() if ax is None else ax
        for name in self.ranking:
            points = [(point.seconds, point.log_density) for point in self.entries[name].trace]
            ax.plot(*zip(*points, strict=True), "o-", ms=4, lw=1.2, label=name)
        clock = "wall time" if self.clock == "wall" else "time of the processors"
        ax.set(xlabel=f"seconds ({clock}, start-up included)", xscale="log")
        ax.set_ylabel("log density of rows held out")
        if self.ranking:
            ax.legend(fontsize="small")
        return ax

    def __str__(self) -> str:
        width = max(len("model"), *map(len, self.entries))
        clock = "wall time" if self.clock == "wall" else "the processors"
        times = "".join(f"{f'{seconds:g} s':>11}" for seconds in self.times)
        lines = [
            f"{self.num_rows:,} rows, {self.num_held_out:,} held out: their mean log density after "
            f"seconds of {clock}",
            f"{'model':<{width}}{times}{'in the end':>24}{'RMSE':>9}{'start-up':>10}",
        ]
        failed = [name for name, entry in self.entries.items() if not entry.trace]
        for name in (*self.ranking, *failed):
            entry = self.entries[name]
            line = f"{name:<{width}}"
            if entry.trace:
                points, last = map(entry.at, self.times), entry.trace[-1]
                line += "".join(f"{f'{p.log_density:.4f}' if p else '-':>11}" for p in points)
                end = f"{last.log_density:.4f} ({last.seconds:.1f} s)"
                line += f"{end:>24}{last.rmse:>9.4f}{entry.startup_seconds:>8.1f} s"
            lines.append(line + ("" if entry.error is None else f"  failed: {entry.error}"))
        return "\n".join(lines)


def race(
    models: Mapping[str, Callable[[RegressionData], Any] | Entrant],
    data: RegressionData,
    seconds: float | Sequence[float],
    *,
    validation_data: RegressionData | None = None,
    clock: Clock = "wall",
    seed: int = 0,
    progress: bool = True,
) -> Race:
    """Train several models for the same time, one after the other, and compare their predictions.

    Each model is built anew by a function of the training rows, and has the full time for itself.
    The clock runs while a model is built, traced and trained, and stops while it predicts the
    held-out rows. If a model fails, the table gives the reason, and the race continues.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(300, 1))
    >>> Y = np.sin(8 * X) + 0.1 * np.random.default_rng(1).normal(size=X.shape)
    >>> def points(data):
    ...     kernel, likelihood = gpflow.kernels.Matern52(), gpflow.likelihoods.Gaussian()
    ...     Z = data[0][:20].copy()
    ...     return gpflow.models.SVGP(kernel, likelihood, Z, num_data=len(data[0]))
    >>> def waves(data):
    ...     base = gpflow.kernels.Matern52()
    ...     kernel = idm.kernels.Periodized.from_data(base, data[0])
    ...     features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 20)
    ...     return idm.models.StructuredSGPR(data, kernel, features)
    >>> found = idm.race({"points": points, "waves": waves}, (X, Y), 2, progress=False)
    >>> sorted(found.ranking)
    ['points', 'waves']

    All are trained by :func:`interdomain.fit`. A StructuredSGPR and a DualSVGP end by themselves,
    whatever the time, and are evaluated then. A model that holds its data is trained with L-BFGS,
    and any other with minibatches of 1,000 rows and its defaults. Use an
    :class:`Entrant` to train a model differently.

    :param models: by name, functions that build a model, or instances of :class:`Entrant`.
    :param data: (X ``[N, D]``, Y ``[N, P]``), finite; NaN in Y is for likelihoods that leave it out
        (``allow_nan = True``), and other models fail.
    :param seconds: how long each model is trained; it is evaluated after an eighth, a quarter and a
        half of this time as well. Or the times of the evaluations, increasing. A model whose first
        step ends later is evaluated then.
    :param validation_data: rows (X, Y) to compare predictions on; by default a tenth of the rows of
        ``data``, drawn at random, is held out, up to 10,000.
    :param clock: "wall", or "cpu" for the seconds of all processors together, which other programs
        on the machine hardly change.
    :param seed: the seed of the held-out rows, of the minibatches, and of TensorFlow, which is set
        before each model.
    :param progress: show a progress bar over the models.
    :raises ValueError: for wrong arguments, fewer than 20 rows, or rows that are not finite.
    """
    entrants = _checked_models(models)
    times = _checked_times(seconds)
    choice("clock", clock, tuple(CLOCKS))
    seed = integer("seed", seed, at_least=0)
    train, held_out = _checked_data(data, validation_data, seed)
    entries: dict[str, RaceEntry] = {}
    bar = progress_bar("race", "model", len(entrants), shown=progress, iterable=entrants.items())
    for name, entrant in bar:
        bar.set_postfix_str(name)
        tf.random.set_seed(seed)
        entries[name] = _Runner(CLOCKS[clock], times, held_out).run(name, entrant, train, seed)
    return Race(entries, times, clock, len(train[0]), len(held_out[0]))


class _Runner:
    """One model on the clock, which stands while the model predicts."""

    def __init__(
        self, now: Callable[[], float], times: tuple[float, ...], held_out: RegressionData
    ) -> None:
        self._now, self._times, self._held_out = now, times, held_out
        self._apart, self._started = 0.0, now()
        self._startup: float | None = None
        self._over = False
        self._trace: list[RacePoint] = []

    def run(self, name: str, entrant: Entrant, train: RegressionData, seed: int) -> RaceEntry:
        model, error = None, None
        try:
            model = entrant.build(train)
            instance(name, model, BayesianModel, "a GPflow model", "let its function return one")
            if not entrant.trained:
                self._train(model, train, entrant.arguments, seed)
            if not self._over:
                self._startup = self._passed() if entrant.trained else self._startup
                self._look(model)
        except Exception as exception:  # whatever it is, the others go on
            text = str(exception).strip().splitlines()
            error = f"{type(exception).__name__}: {text[0] if text else 'without a message'}"
        startup = self._passed() if self._startup is None else self._startup
        return RaceEntry(name, model, tuple(self._trace), startup, error)

    def _passed(self) -> float:
        return self._now() - self._started - self._apart

    def _train(
        self, model: Any, train: RegressionData, arguments: Mapping[str, Any], seed: int
    ) -> None:
        ends_by_itself = isinstance(model, (StructuredSGPR, DualSVGP))
        holds_data = isinstance(model, InternalDataTrainingLossMixin)
        defaults: dict[str, Any] = {"progress": False}
        options = {"seed": seed} if ends_by_itself or not holds_data else {}
        if ends_by_itself:
            self._startup = self._passed()
        else:
            defaults |= {"steps": _STEPS, "callbacks": [self._step]}
            options["every"] = 1
        if not holds_data:
            defaults["batch_size"] = min(_BATCH_SIZE, len(train[0]))
        options |= arguments.get("options", {})
        fit(model, None if holds_data else train, **{**defaults, **arguments, "options": options})

    def _step(self, step: int, model: Any) -> None:
        """After each step: a look, if it is time for one."""
        passed = self._passed()
        if self._startup is None:
            self._startup = passed
        due = [seconds for seconds in self._times if passed >= seconds]
        if due and (not self._trace or self._trace[-1].seconds < due[-1]):
            self._look(model)
        self._over = len(due) == len(self._times)
        if self._over:
            raise StopFit("the race is over")

    def _look(self, model: Any) -> None:
        """Add what the model has learned to the trace, in time that does not count."""
        passed, before = self._passed(), self._now()
        X, Y = self._held_out
        densities = predict_in_batches(model, X, Y=Y, method="predict_log_density", progress=False)
        rmse = float("nan")
        if np.shape(Y)[1] <= (num_functions(model) or np.inf):  # further columns are no values of f
            means = np.asarray(predict_in_batches(model, X, method="predict_y", progress=False)[0])
            if means.shape == np.shape(Y):
                rmse = float(np.sqrt(np.nanmean(np.square(means - np.asarray(Y)))))
        self._trace.append(RacePoint(passed, float(np.mean(np.asarray(densities))), rmse))
        self._apart += self._now() - before


def _checked_models(models: Any) -> dict[str, Entrant]:
    if not isinstance(models, Mapping) or not models:
        raise ValueError(
            f"models must be functions by name, found {type(models).__name__}; pass a dict such as "
            "{'points': build}, whose functions take (X, Y) and return a model."
        )
    remedy = "pass one that takes (X, Y) and returns a new model"
    return {
        str(name): value
        if isinstance(value, Entrant)
        else Entrant(instance(f"models[{name!r}]", value, Callable, "a function", remedy))
        for name, value in models.items()
    }


def _checked_times(seconds: Any) -> tuple[float, ...]:
    if not isinstance(seconds, (list, tuple)):
        seconds = number("seconds", seconds, above=0)
        return tuple(share * seconds for share in _SHARES)
    times = tuple(number("seconds", time, above=0) for time in seconds)
    if not times or np.any(np.diff(times) <= 0):
        raise ValueError(f"seconds must rise, found {list(times)}; pass times such as [5, 10, 20].")
    return times


def check_enough(name: str, count: int) -> None:
    """Refuse so few rows that those held out would say nothing."""
    if count < _LEAST_ROWS:
        raise ValueError(
            f"{name} must have {_LEAST_ROWS} rows or more, found {count}; with so few take "
            "gpflow.models.GPR, whose prior says more than rows held out."
        )


def _in_default_float(name: str, data: Any) -> RegressionData:
    """NaN in Y may stand for a value that is missing, which is for the models to say."""
    X, Y = checked_arrays(data, None, name, missing=True)
    return X.astype(gpflow.default_float()), Y.astype(gpflow.default_float())


def _checked_data(
    data: Any, validation_data: Any, seed: int
) -> tuple[RegressionData, RegressionData]:
    X, Y = _in_default_float("data", data)
    check_enough("data: X", len(X))
    if validation_data is not None:
        return (X, Y), _in_default_float("validation_data", validation_data)
    order = np.random.default_rng(seed).permutation(len(X))
    count = min(max(len(X) // _HELD_OUT, 1), _MOST_HELD_OUT)
    apart, rest = order[:count], np.sort(order[count:])
    return (X[rest], Y[rest]), (X[apart], Y[apart])
