"""A race: several models are trained for the same time, and their predictions are compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import RegressionData
from gpflow.models import BayesianModel
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

from .. import fit, predict_in_batches
from .._arguments import choice, filled_matrix, finite_array, instance, integer, number, pair
from .._progress import progress_bar
from ..models import DualSVGP, StructuredSGPR, VecchiaSGPR
from ..training import StopFit
from .results import Clock, Point, Race, RaceEntry

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}

Entrant: TypeAlias = tuple[Callable[[RegressionData], Any], Mapping[str, Any] | None]
"""A function that builds a model, and the arguments of ``fit``; None if it is trained already."""

_SHARES = (0.125, 0.25, 0.5, 1.0)
"""The shares of the seconds after which models are evaluated, by default."""

_HELD_OUT, _MOST_HELD_OUT, _LEAST_ROWS = 10, 10_000, 20
"""One row in ten is held out; the largest number of held-out rows; the least number of rows."""

_BATCH_SIZE, _STEPS = 1_000, 10**9

_ENDING = StructuredSGPR, DualSVGP, VecchiaSGPR
"""Models whose training ends by itself."""


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

    Each model has the full time for itself. The clock runs while a model is built, traced and
    trained, and stops while it predicts the held-out rows. If a model fails, the table gives the
    reason, and the race continues.

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
    >>> found = idm.race({"points": points, "waves": waves}, (X, Y), 0.5, progress=False)
    >>> sorted(found.ranking)
    ['points', 'waves']

    :func:`interdomain.fit` trains the models. A StructuredSGPR, DualSVGP or VecchiaSGPR is trained
    until it converges, whatever the time. A model that holds its data is trained by L-BFGS, and any
    other model on minibatches of 1,000 rows.

    :param models: A dict from names to functions. A function of the training rows (X ``[N, D]``, Y
        ``[N, P]``) returns a model. A pair ``(points, {"optimizer": (None, 0.01)})`` also gives
        arguments of ``fit``; ``(points, None)`` says that the function trains the model itself.
    :param data: (X ``[N, D]``, Y ``[N, P]``), finite. Y may have NaN for likelihoods that leave it
        out (``allow_nan = True``); models with other likelihoods fail.
    :param seconds: The time of each model, which is evaluated after an eighth, a quarter, a half
        and all of it. A list gives the times of evaluation instead. A model whose first step ends
        later is evaluated after this step.
    :param validation_data: Rows (X, Y) on which predictions are compared. By default a tenth of the
        rows of ``data``, up to 10,000, is drawn at random and held out.
    :param clock: "wall", or "cpu" for the seconds of all processors together, which hardly depend
        on other programs.
    :param seed: The seed of the held-out rows, of the minibatches, and of TensorFlow, which is set
        before each model.
    :param progress: Show a progress bar over the models.
    :return: A table, when printed. ``ranking`` has the names, best first. ``entries`` has, by name,
        the ``model``, the ``error`` of a failed model, and the ``trace``: tuples of seconds, mean
        log density of held-out rows, and root mean squared error of the predicted Y.
    :raises ValueError: If there are no models; for rows that are not finite; for fewer than 20 rows
        without ``validation_data``.
    """
    rule = "a dict of one or more functions that build models, by name"
    instance("models", models, Mapping, rule, 'pass {"points": build_points}')
    if not models:
        raise ValueError(f"models must be {rule}, found none.")
    entrants: dict[str, Entrant] = {}
    for name, given in models.items():
        entrant = given if isinstance(given, tuple) else (given, {})
        build, arguments = entrant if len(entrant) == 2 else (None, None)
        remedy = "pass one that takes (X, Y) and returns a new model"
        instance(f"models[{name!r}]", build, Callable, "a function", remedy)
        if arguments is not None:
            what = "a pair of a function and a dict of the arguments of fit, or None"
            instance(f"models[{name!r}]", arguments, Mapping, what)
        entrants[name] = entrant
    if not isinstance(seconds, (list, tuple)):
        longest = number("seconds", seconds, above=0)
        seconds = [share * longest for share in _SHARES]
    times = tuple(sorted(number("seconds", time, above=0) for time in seconds))
    if not times:
        raise ValueError("seconds must be a number or a list of numbers, found none of them.")
    choice("clock", clock, tuple(CLOCKS))
    seed = integer("seed", seed, at_least=0)
    X, Y = _checked_rows("data", data)
    if validation_data is not None:
        train, held_out = (X, Y), _checked_rows("validation_data", validation_data)
    else:
        check_enough("data: X", len(X), _HELD_OUT)
        order = np.random.default_rng(seed).permutation(len(X))
        count = min(max(len(X) // _HELD_OUT, 1), _MOST_HELD_OUT)
        apart, rest = order[:count], np.sort(order[count:])
        train, held_out = (X[rest], Y[rest]), (X[apart], Y[apart])
    entries: dict[str, RaceEntry] = {}
    bar = progress_bar("race", "model", len(entrants), shown=progress, iterable=entrants.items())
    for name, entrant in bar:
        bar.set_postfix_str(name)
        tf.random.set_seed(seed)
        entries[name] = _Runner(CLOCKS[clock], times, held_out).run(name, entrant, train, seed)
    return Race(entries, times, clock, len(train[0]), len(held_out[0]))


class _Runner:
    """The training and evaluation of one model, on a clock that stops while the model predicts."""

    def __init__(
        self, now: Callable[[], float], times: tuple[float, ...], held_out: RegressionData
    ) -> None:
        self._now, self._times, self._held_out = now, times, held_out
        self._apart, self._started = 0.0, now()
        self._over = False
        self._trace: list[Point] = []

    def run(self, name: str, entrant: Entrant, train: RegressionData, seed: int) -> RaceEntry:
        model, error = None, None
        build, arguments = entrant
        try:
            model = build(train)
            instance(name, model, BayesianModel, "a GPflow model", "let its function return one")
            if arguments is not None:
                self._train(model, train, seed, arguments)
            if not self._over:
                self._look(model)
        except Exception as exception:  # the other models continue
            text = str(exception).strip().splitlines()
            error = f"{type(exception).__name__}: {text[0] if text else 'without a message'}"
        return RaceEntry(model, self._trace, error, len(train[0]))

    def _passed(self) -> float:
        return self._now() - self._started - self._apart

    def _train(
        self, model: Any, train: RegressionData, seed: int, arguments: Mapping[str, Any]
    ) -> None:
        options = {"seed": seed, **arguments.get("options", {})}
        how: dict[str, Any] = {"progress": False}
        data: RegressionData | None = None
        if not isinstance(model, _ENDING):
            how |= {"steps": _STEPS, "callbacks": [self._step]}
            options = {"every": 1, **options}
            if not isinstance(model, InternalDataTrainingLossMixin):
                data, how["batch_size"] = train, min(_BATCH_SIZE, len(train[0]))
        fit(model, data, **{**how, **arguments, "options": options})

    def _step(self, step: int, model: Any) -> None:
        """Evaluate the model after a step, if a time of evaluation has passed."""
        passed = self._passed()
        due = [seconds for seconds in self._times if passed >= seconds]
        if due and (not self._trace or self._trace[-1][0] < due[-1]):
            self._look(model)
        self._over = len(due) == len(self._times)
        if self._over:
            raise StopFit("the race is over")

    def _look(self, model: Any) -> None:
        """Evaluate the model on the held-out rows, with the clock stopped, and extend the trace."""
        passed, before = self._passed(), self._now()
        X, Y = self._held_out
        densities = predict_in_batches(model, X, Y=Y, method="predict_log_density", progress=False)
        rmse = float("nan")
        latent_mean = predict_in_batches(model, X[:1], progress=False)[0]
        if np.shape(Y)[1] <= np.shape(latent_mean)[1]:  # more columns are not values of f
            means = np.asarray(predict_in_batches(model, X, method="predict_y", progress=False)[0])
            if means.shape == np.shape(Y):
                rmse = float(np.sqrt(np.nanmean(np.square(means - np.asarray(Y)))))
        self._trace.append((passed, float(np.mean(np.asarray(densities))), rmse))
        self._apart += self._now() - before


def check_enough(name: str, count: int, one_in: int) -> None:
    """Raise a ValueError for fewer than 20 rows, which leave too few held-out rows."""
    if count < _LEAST_ROWS:
        raise ValueError(
            f"{name} must have {_LEAST_ROWS} rows or more, found {count}; with so few, "
            f"one held-out row in {one_in} cannot compare models. Use gpflow.models.GPR."
        )


def _checked_rows(name: str, data: Any) -> RegressionData:
    """Rows X and Y in GPflow's float type; Y may have NaN, which some likelihoods support."""
    X, Y = pair(name, data)
    X = filled_matrix(f"{name}: X", X, "a matrix [N, D]")
    Y = finite_array(f"{name}: Y", Y, (2,), "a matrix [N, P]", missing=True)
    if len(X) != len(Y):
        raise ValueError(f"{name}: found {len(X)} rows of X and {len(Y)} of Y; pass as many.")
    return X.astype(gpflow.default_float()), Y.astype(gpflow.default_float())
