"""Trains several models for the same time, and compares their predictions."""

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
"""What builds a model, and the arguments of ``fit``; None if it is trained already."""

_SHARES = (0.125, 0.25, 0.5, 1.0)
"""The shares of the seconds after which models are evaluated, by default."""

_HELD_OUT, _MOST_HELD_OUT, _LEAST_ROWS = 10, 10_000, 20
"""One row of so many is held out; the most held-out rows, and the least rows."""

_BATCH_SIZE, _STEPS = 1_000, 10**9

_ENDING = StructuredSGPR, DualSVGP, VecchiaSGPR
"""The models whose training ends by itself."""


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
    >>> found = idm.race({"points": points, "waves": waves}, (X, Y), 0.5, progress=False)
    >>> sorted(found.ranking)
    ['points', 'waves']

    :func:`interdomain.fit` trains the models. A StructuredSGPR, DualSVGP or VecchiaSGPR ends by
    itself, whatever the time. A model that holds its data is trained by L-BFGS, and any other by
    minibatches of 1,000 rows.

    :param models: By name, functions that build a model of the training rows (X ``[N, D]``, Y
        ``[N, P]``); or pairs of such a function and the arguments of ``fit``, such as ``(points,
        {"optimizer": (None, 0.01)})``, None if the function has trained the model already.
    :param data: (X ``[N, D]``, Y ``[N, P]``), finite; NaN in Y is for likelihoods that leave it out
        (``allow_nan = True``), and other models fail.
    :param seconds: How long each model is trained; it is evaluated after an eighth, a quarter and a
        half of this time as well. Or the times of the evaluations. A model whose first
        step ends later is evaluated then.
    :param validation_data: Rows (X, Y) to compare predictions on; by default a tenth of the rows of
        ``data``, drawn at random, is held out, up to 10,000.
    :param clock: "wall", or "cpu" for the seconds of all processors together, which other programs
        on the machine hardly change.
    :param seed: The seed of the held-out rows, of the minibatches, and of TensorFlow, which is set
        before each model.
    :param progress: Show a progress bar over the models.
    :return: A table, when printed. ``ranking`` has the names, best first; ``entries``, by name, the
        ``model``, its ``trace`` of seconds, log densities and errors, and why it failed.
    :raises ValueError: for no models; for rows that are not finite, or fewer than 20 rows of which
        a tenth is held out.
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
    """One model on the clock, which stands while the model predicts."""

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
        except Exception as exception:  # whatever it is, the others go on
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
        """After each step: a look, if it is time for one."""
        passed = self._passed()
        due = [seconds for seconds in self._times if passed >= seconds]
        if due and (not self._trace or self._trace[-1][0] < due[-1]):
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
        latent_mean = predict_in_batches(model, X[:1], progress=False)[0]
        if np.shape(Y)[1] <= np.shape(latent_mean)[1]:  # further columns are no values of f
            means = np.asarray(predict_in_batches(model, X, method="predict_y", progress=False)[0])
            if means.shape == np.shape(Y):
                rmse = float(np.sqrt(np.nanmean(np.square(means - np.asarray(Y)))))
        self._trace.append((passed, float(np.mean(np.asarray(densities))), rmse))
        self._apart += self._now() - before


def check_enough(name: str, count: int, one_in: int) -> None:
    """Refuse so few rows that held-out rows, one in so many, would say nothing."""
    if count < _LEAST_ROWS:
        raise ValueError(
            f"{name} must have {_LEAST_ROWS} rows or more, found {count}; with so few, of which "
            f"{_LEAST_ROWS // one_in} in {_LEAST_ROWS} are held out, take gpflow.models.GPR, whose "
            "prior says more than rows held out."
        )


def _checked_rows(name: str, data: Any) -> RegressionData:
    """Rows in GPflow's type; NaN in Y may stand for a missing value, which models decide."""
    X, Y = pair(name, data)
    X = filled_matrix(f"{name}: X", X, "a matrix [N, D]")
    Y = finite_array(f"{name}: Y", Y, (2,), "a matrix [N, P]", missing=True)
    if len(X) != len(Y):
        raise ValueError(f"{name}: found {len(X)} rows of X and {len(Y)} of Y; pass as many.")
    return X.astype(gpflow.default_float()), Y.astype(gpflow.default_float())
