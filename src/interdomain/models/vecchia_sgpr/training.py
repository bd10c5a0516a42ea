"""How a :class:`interdomain.models.VecchiaSGPR` is trained: features and neighbours in turn."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from ..._arguments import Array, choice
from ..._tracing import operation_by_operation
from ...core.parameters import frozen
from ...training.lbfgs import LBFGS, fit_by_lbfgs
from ...training.losses import NumericalBreakdown
from ...training.results import Ending, FitResult, NonFiniteError, Parts
from ...training.run import Plan, Run, train
from ..rows_model import noise_variance_of
from ..rows_trainer import RowsTrainer
from ..structured_sgpr.model import StructuredSGPR
from ..structured_sgpr.training import fit_structured
from .local_kernel import Conditionals, conditional_weights
from .model import VecchiaSGPR
from .samples import chances_of_rows, check_offset, mean_square, sample_of, warn_of_rows

_OF_START, _FEW, _MANY, _OF_NOISE = 256, 1_024, 4_096, 8_192
"""Rows whose conditional densities train the local kernel: at each start; at the best; in each
turn; and those that raise the noise before the first. Rare rows whose nearest ones contradict them
say how much of it there is."""

_MOST_ENTRIES = 2**23
"""Numbers in the covariances of these rows, at most."""

_STEPS_OF_START, _STEPS_OF_FEW, _STEPS, _STEPS_OF_FEATURES = 6, 25, 12, 1_000

_NOISE_SHARES = (0.02, 0.3, 0.9)
"""Of what the features leave, at the starts."""

_LENGTHSCALES = (1.0, 0.3)
"""Times those given, at the starts."""

_FACTOR = 4.0
"""Between levels of noise that are tried."""

_LEAST_VARIANCE = 100.0
"""The least variance of residuals at the starts, in lower bounds of the noise variance: residuals
of zero then have a start."""

_ENOUGH = 1e-3
"""Nats a row: turns end when the evidence rises by less."""


class Turns:
    """The local kernel and the noise, on samples of rows; then neighbours, a pass and the features'
    parameters without data; and again, until the evidence rises no more.

    :param explained: What features and mean explain of rows X, before the first turn.
    :ivar best: The highest log evidence so far.
    """

    exact = True

    def __init__(
        self,
        model: VecchiaSGPR,
        conditionals: Conditionals,
        seed: int,
        explained: Callable[[Array], Any],
    ) -> None:
        self._model, self._conditionals = model, conditionals
        self._seed, self._explained, self.best = seed, explained, -np.inf
        check_offset(model, explained)
        self._chances = chances_of_rows(model, explained)
        self.variables = tuple(model.trainable_variables)
        self.stored = {"model": model}
        self.described = {"method": "turns"}

    def train(self, run: Run) -> Ending:
        """Make the turns that are left, and leave the model at the best."""
        model = self._model
        self._start()
        while True:
            if not run.step:
                self._raise_noise(self.batch(_OF_NOISE, self._seed))
            self._lbfgs(self.batch(_MANY, self._seed + run.step), _STEPS)
            model.search()
            elbo = self._train_features()
            self._explained = model.explained
            gain, self.best = elbo - self.best, max(elbo, self.best)
            if gain >= 0:
                run.keep(run.step + 1)
            ending = run.after_step(elbo)
            if not model.has_features and not model.mean_function.trainable_parameters:
                ending = Ending("converged", "without features one turn is all")
            elif gain < _ENOUGH * model.num_data:
                ending = Ending("converged", f"the last turn raised the evidence by {gain:.2g}")
            if ending is not None:
                if gain < 0:
                    run.restore()
                    model.search()
                return ending

    def _start(self) -> None:
        """The best of several noise levels and lengthscales, after a few steps from each."""
        model, kernel = self._model, self._model.local_kernel
        variables = self._conditionals.trainable_variables
        # A common factor of lengthscales leaves neighbours as they are.
        trained, judged = self.batch(_OF_START, 0), self.batch(_OF_START, 1)
        least = _LEAST_VARIANCE * model.likelihood.variance_lower_bound
        total = max(mean_square(trained), least)
        given, tried = kernel.lengthscales.numpy(), []
        # The present values are the first start: a second fit goes on from these.
        starts = [None, *itertools.product(_NOISE_SHARES, _LENGTHSCALES)]
        for start in starts:
            if start is not None:
                share, factor = start
                _assign(kernel.lengthscales, factor * given)
                _assign(kernel.variance, (1 - share) * total)
                _assign_noise(model.likelihood, share * total)
            with contextlib.suppress(NonFiniteError):
                self._lbfgs(trained, _STEPS_OF_START)
                density = self._conditionals.maximum_log_likelihood_objective(judged)
                tried.append((float(density), [variable.numpy() for variable in variables]))
        if not tried:
            raise NumericalBreakdown(
                "no start of the local kernel has a finite density; are rows repeated whose "
                "targets differ, with a noise variance that is fixed and too small?"
            )
        for variable, value in zip(variables, max(tried, key=lambda t: t[0])[1], strict=True):
            variable.assign(value)
        self._lbfgs(self.batch(_FEW, self._seed), _STEPS_OF_FEW)

    def _raise_noise(self, batch: tuple[tf.Tensor, ...]) -> None:
        """To the level, if there is one, at which many rows are likelier than at that of few."""
        likelihood = self._model.likelihood
        now = float(noise_variance_of(likelihood))
        most = max(mean_square(batch), now)
        levels = now * _FACTOR ** np.arange(max(1, np.ceil(np.log(most / now) / np.log(_FACTOR))))
        densities = list[float]()
        for level in levels:
            _assign_noise(likelihood, level)
            densities.append(float(self._conditionals.maximum_log_likelihood_objective(batch)))
            if len(densities) > 2 and densities[-1] < densities[-2] < densities[-3]:
                break  # beyond the best level they fall on
        _assign_noise(likelihood, levels[np.argmax(densities)])

    def _lbfgs(self, batch: tuple[tf.Tensor, ...], steps: int) -> None:
        method = LBFGS(self._conditionals, batch, {})
        train(self._conditionals, method, Plan(time.perf_counter(), steps))

    def batch(self, number: int, seed: int) -> tuple[tf.Tensor, ...]:
        """A sample of rows, with the residuals of features and mean: see :class:`Conditionals`."""
        number = min(number, max(256, _MOST_ENTRIES // (self._model.num_neighbours + 1) ** 2))
        X, Y, places, *near = sample_of(self._model, number, seed, self._chances)
        left = Y - np.asarray(self._explained(X))
        points, known, weights = near
        residuals = np.asarray(left, np.float64)[places]
        return tuple(map(tf.constant, (points, known, weights, residuals)))

    def _train_features(self) -> float:
        """What a pass has sums for, without data; and the evidence."""
        model = self._model
        block = () if model.has_features else (model.kernel, model.inducing_variable)
        unused = [parameter for part in block for parameter in part.parameters]
        with frozen([*model.feature_parameters.values(), *unused]), operation_by_operation():
            if model.trainable_variables:
                fit_by_lbfgs(model, steps=_STEPS)
            return float(model.elbo())


class VecchiaTrainer(RowsTrainer):
    """The fit of a VecchiaSGPR with neighbours: see :func:`interdomain.fit`. Steps are turns."""

    steps, every = 8, 1
    options = ("parts",)

    def __init__(self, model: VecchiaSGPR, optimizer: Any) -> None:
        super().__init__(model)
        self._optimizer = optimizer

    def fit(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        if self._optimizer is not None:
            raise ValueError(
                f"optimizer: a VecchiaSGPR is trained in turns, found {self._optimizer!r}; leave "
                "optimizer out."
            )
        self.refuse(options)
        result = fit_vecchia(self.model, plan, options.get("parts"))
        self.model.check_spacing()
        return result


def fit_vecchia(model: VecchiaSGPR, plan: Plan, parts: str | None) -> FitResult:
    """Train features and neighbours in turns, and select the parts of highest evidence.

    :param parts: "features", "neighbours" or "both", if no other is to be tried; None for all.
    """
    names = model.all_parts
    if parts is not None:
        names = (choice("parts", parts, names, "pass a kernel and its features for others"),)
    _check(model, plan)
    warn_of_rows(model)
    before = model.parts
    try:
        return _fit_parts(model, plan, names)
    except BaseException:
        model.use(before)
        raise


def _fit_parts(model: VecchiaSGPR, plan: Plan, names: Sequence[str]) -> FitResult:
    """Train each of the named parts, and select the one of highest evidence."""
    results, tried = dict[str, FitResult](), dict[str, _Tried]()
    conditionals = Conditionals(model.local, model.likelihood)
    explained: Callable[[Array], Any] = model.mean_function
    if tuple(names) != ("neighbours",):
        alone = _features_alone(model)
        by_lbfgs = dataclasses.replace(plan, steps=_STEPS_OF_FEATURES, every=100, callbacks=())
        results["features"] = fit_structured(alone, by_lbfgs, {})
        if plan.num_inducing is not None:
            model.kernel, model.inducing_variable = alone.kernel, alone.inducing_variable
        of_features = _Tried(model, "features", float(alone.elbo()), noise=alone.likelihood)
        if "features" in names:
            tried["features"] = of_features
        explained = alone.explained
    given = _Tried(model, names[-1], np.nan)
    for name in names:
        if name != "features":
            given.restore(model)
            model.use(name)
            left = model.mean_function if name == "neighbours" else explained
            turns = Turns(model, conditionals, plan.seed, left)
            results[name] = train(model, turns, plan)
            tried[name] = _Tried(model, name, turns.best)
    kept = max(tried, key=lambda name: tried[name].worth)
    if kept == "features" or kept != names[-1]:  # otherwise it is what the model has now
        tried[kept].restore(model)
        model.search()
    evidence = {name: each.evidence / model.num_data for name, each in tried.items()}
    fit_of_features = results.get("features")
    return dataclasses.replace(
        results[kept],
        seconds=time.perf_counter() - plan.started,
        elbo=tried[kept].evidence,
        parts=Parts(evidence, kept, _shares(model, plan.seed)),
        frozen=fit_of_features.frozen if fit_of_features else (),
        choice=fit_of_features.choice if fit_of_features else None,
    )


class _Tried:
    """The values of a model's parameters, after the named parts were trained.

    :param evidence: The evidence of these parts.
    :param noise: A likelihood whose parameters are those of the model's likelihood.
    :ivar worth: The evidence, less ``log(N) / 2`` for each number that the kernels have (Schwarz
        1978, his criterion): what explains no more than fewer numbers is not kept.
    """

    def __init__(
        self, model: VecchiaSGPR, name: str, evidence: float, *, noise: Gaussian | None = None
    ) -> None:
        self.evidence, self._name = evidence, name
        parts = {"neighbours": model.kernel, "features": model.local_kernel}
        kernels = [part for other, part in parts.items() if other != name]
        numbers = sum(np.size(p.numpy()) for kernel in kernels for p in kernel.parameters)
        self.worth = evidence - numbers * np.log(model.num_data) / 2
        variables = [p.unconstrained_variable for p in model.parameters]
        self._values = [(variable, variable.numpy()) for variable in variables]
        if noise is not None:
            for mine, other in zip(model.likelihood.parameters, noise.parameters, strict=True):
                value = other.unconstrained_variable.numpy()
                self._values.append((mine.unconstrained_variable, value))

    def restore(self, model: VecchiaSGPR) -> None:
        """Give the model these values, and select the parts."""
        model.use(self._name)
        for variable, value in self._values:
            variable.assign(value)


def _features_alone(model: VecchiaSGPR) -> StructuredSGPR:
    """A model of the same rows, with noise of its own for what the features leave."""
    noise = gpflow.utilities.deepcopy(model.likelihood)
    alone: StructuredSGPR = model.model_of(model.arrays, likelihood=noise)
    return alone


def _check(model: VecchiaSGPR, plan: Plan) -> None:
    """:raises ValueError: For what a fit of neighbours has no use for."""
    if plan.checkpoint_dir is not None:
        raise ValueError(
            f"checkpoint_dir: the fit of a VecchiaSGPR cannot be resumed, found "
            f"{plan.checkpoint_dir!r}; leave checkpoint_dir out, and save the fitted model with "
            "tf.train.Checkpoint(model=model).write(path)."
        )
    if plan.num_inducing is not None and "features" not in model.all_parts:
        raise ValueError(
            f"num_inducing: the model has no features to begin with, found {plan.num_inducing}; "
            "give it a kernel and a few features, or leave num_inducing out."
        )


def _shares(model: VecchiaSGPR, seed: int) -> dict[str, float]:
    """The shares of the mean square of Y less its mean, on a sample: see :class:`Parts`."""
    chances = chances_of_rows(model, model.mean_function)
    X, Y, places, points, known, of_rows = sample_of(model, _FEW, seed, chances)
    total = (Y - np.asarray(model.mean_function(X)))[places[:, -1]]
    left = (Y - model.explained(X))[places]
    errors, noise = left[:, -1], noise_variance_of(model.likelihood)
    if model.has_neighbours:
        covariance = model.local.covariance(tf.constant(points))
        weights, log_variances = conditional_weights(covariance, tf.constant(known), noise)
        errors = tf.einsum("bk,bkp->bp", weights, left) * tf.exp(log_variances / 2)[:, None]
    parts = (total, left[:, -1], errors)
    squares = [float(of_rows @ np.mean(np.square(part), axis=1)) for part in parts]
    first, second, third = (square / (squares[0] or 1.0) for square in squares)
    of_noise = min(float(noise) / (squares[0] or np.inf), third)
    return {
        "features": first - second,
        "neighbours": second - third,
        "noise": of_noise,
        "unexplained": third - of_noise,
    }


def _assign(parameter: Any, value: Any) -> None:
    if parameter.trainable:
        parameter.assign(value)


def _assign_noise(likelihood: Gaussian, variance: float) -> None:
    """A noise variance, above GPflow's lower bound."""
    variance = max(variance, 2 * likelihood.variance_lower_bound)
    if likelihood.variance is not None:
        _assign(likelihood.variance, variance)
    else:
        _assign(likelihood.scale, np.sqrt(variance))
