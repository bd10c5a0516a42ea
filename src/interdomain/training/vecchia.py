"""How a :class:`interdomain.models.VecchiaSGPR` is trained: features and neighbours in turn."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from .._arguments import Array, choice
from .._tracing import operation_by_operation
from ..neighbours.local_kernel import Conditionals, conditional_weights
from ..neighbours.vecchia_sgpr import VecchiaSGPR
from ..neighbours.whitening import NoFeatures, NoKernel
from ..regression.rows_model import noise_variance_of
from ..regression.structured_sgpr import StructuredSGPR
from .lbfgs import LBFGS, fit_by_lbfgs
from .losses import NumericalBreakdown
from .passes import frozen
from .results import Ending, FitResult, NonFiniteError, Parts
from .run import Plan, Run, train
from .structured import fit_structured

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
            if not model.has_features:
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
        total = float(tf.reduce_mean(tf.square(trained[2])))
        given, tried = kernel.lengthscales.numpy(), []
        for share, factor in itertools.product(_NOISE_SHARES, _LENGTHSCALES):
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
        most = float(tf.reduce_mean(tf.square(batch[2])))
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
        """A sample of rows, with what features and mean leave of them."""
        number = min(number, max(256, _MOST_ENTRIES // (self._model.num_neighbours + 1) ** 2))
        X, Y, places, *near = _sample(self._model, number, seed)
        left = Y - np.asarray(self._explained(X))
        return tuple(map(tf.constant, (*near, left[places])))

    def _train_features(self) -> float:
        """What a pass has sums for, without data; and the evidence."""
        model = self._model
        with frozen(model.feature_parameters.values()), operation_by_operation():
            if model.trainable_variables:
                fit_by_lbfgs(model, steps=_STEPS)
            return float(model.elbo())


def fit_vecchia(model: VecchiaSGPR, plan: Plan, parts: str | None) -> FitResult:
    """The fit of a VecchiaSGPR with neighbours: see :func:`interdomain.fit`, whose arguments these
    are; steps are turns.

    :param parts: "features", "neighbours" or "both", if no other is to be tried; None for all.
    """
    names = ("features", "neighbours", "both") if model.has_features else ("neighbours",)
    if parts is not None:
        names = (choice("parts", parts, names, "pass a kernel and its features for others"),)
    _check(model, plan)
    results, tried = dict[str, FitResult](), dict[str, _Tried]()
    conditionals = Conditionals(model.local, model.likelihood)
    explained: Callable[[Array], Any] = model.mean_function
    if names != ("neighbours",):
        alone = _features_alone(model)
        by_lbfgs = dataclasses.replace(plan, steps=_STEPS_OF_FEATURES, every=100, callbacks=())
        results["features"] = fit_structured(alone, by_lbfgs, {})
        model.kernel, model.inducing_variable = alone.kernel, alone.inducing_variable
        given = _Tried(model, float(alone.elbo()), noise=alone.likelihood)
        if "features" in names:
            tried["features"] = given
        explained = alone.explained
    if "neighbours" in names:
        before = _Tried(model, np.nan)
        model.kernel, model.inducing_variable = NoKernel(), NoFeatures()
        turns = Turns(model, conditionals, plan.seed, model.mean_function)
        results["neighbours"] = train(model, turns, plan)
        tried["neighbours"] = _Tried(model, turns.best)
        if "both" in names:
            before.restore(model)
    if "both" in names:
        turns = Turns(model, conditionals, plan.seed, explained)
        results["both"] = train(model, turns, plan)
        tried["both"] = _Tried(model, turns.best)
    kept = max(tried, key=lambda name: tried[name].worth)
    if kept == "features" or kept != names[-1]:  # otherwise it is what the model has now
        tried[kept].restore(model)
        model.search(0 if kept == "features" else None)
    evidence = {name: each.evidence / model.num_data for name, each in tried.items()}
    of_features = results.get("features")
    return dataclasses.replace(
        results[kept],
        seconds=time.perf_counter() - plan.started,
        elbo=tried[kept].evidence,
        parts=Parts(evidence, kept, _shares(model, plan.seed)),
        frozen=of_features.frozen if of_features else (),
        choice=of_features.choice if of_features else None,
    )


class _Tried:
    """A model's features and the values of its parameters, to come back to.

    :param evidence: Of the features alone, if ``noise`` is given.
    :param noise: A likelihood whose parameters are those of the model's likelihood.
    :ivar worth: The evidence, less ``log(N) / 2`` for each number that the kernels have (Schwarz
        1978, his criterion): what explains no more than fewer numbers is not kept.
    """

    def __init__(
        self, model: VecchiaSGPR, evidence: float, *, noise: Gaussian | None = None
    ) -> None:
        self.evidence, self._block = evidence, (model.kernel, model.inducing_variable)
        parts = [model.kernel, *([model.local_kernel] if noise is None else [])]
        numbers = sum(np.size(p.numpy()) for part in parts for p in part.parameters)
        self.worth = evidence - numbers * np.log(model.num_data) / 2
        parameters = list(model.parameters)
        self._values = [(p, p.numpy()) for p in parameters]
        if noise is not None:
            pairs = zip(model.likelihood.parameters, noise.parameters, strict=True)
            self._values += [(mine, other.numpy()) for mine, other in pairs]

    def restore(self, model: VecchiaSGPR) -> None:
        model.kernel, model.inducing_variable = self._block
        for parameter, value in self._values:
            parameter.assign(value)


def _features_alone(model: VecchiaSGPR) -> StructuredSGPR:
    """A model of the same rows, with noise of its own for what the features leave."""
    noise = gpflow.utilities.deepcopy(model.likelihood)
    alone: StructuredSGPR = model.model_of(model.arrays, likelihood=noise)
    return alone


def _check(model: VecchiaSGPR, plan: Plan) -> None:
    """:raises ValueError: For what a fit of neighbours has no use for."""
    if plan.checkpoint_dir is not None:
        raise ValueError(
            f"checkpoint_dir: the fit of a VecchiaSGPR is not gone on with, found "
            f"{plan.checkpoint_dir!r}; leave it out, and save what is fitted with "
            "tf.train.Checkpoint(model=model)."
        )
    if plan.num_inducing is not None and not model.has_features:
        raise ValueError(
            f"num_inducing: the model has no features to begin with, found {plan.num_inducing}; "
            "give it a kernel and a few features, or leave num_inducing out."
        )


def _sample(model: VecchiaSGPR, number: int, seed: int) -> tuple[Any, ...]:
    """Random rows with their neighbours: X and Y, the places of these, and last of themselves,
    ``[B, m + 1]``; their coordinates ``[B, m + 1, d]``, and which there are ``[B, m + 1]``."""
    X, Y, places = model.sample(number, seed)
    known, places = places >= 0, np.maximum(places, 0)
    points = model.local.coordinates(tf.convert_to_tensor(X)).numpy()
    return X, Y, places, points[places], known


def _shares(model: VecchiaSGPR, seed: int) -> dict[str, float]:
    """What parts explain of the mean square of Y without its mean function, on a sample."""
    X, Y, places, points, known = _sample(model, _FEW, seed)
    total = (Y - np.asarray(model.mean_function(X)))[places[:, -1]]
    left = (Y - model.explained(X))[places]
    errors = left[:, -1]
    if model.num_neighbours:
        noise = noise_variance_of(model.likelihood)
        covariance = model.local.covariance(tf.constant(points))
        weights, log_variances = conditional_weights(covariance, tf.constant(known), noise)
        errors = tf.einsum("bk,bkp->bp", weights, left) * tf.exp(log_variances / 2)[:, None]
    squares = [float(np.mean(np.square(part))) for part in (total, left[:, -1], errors)]
    first, second, third = (square / squares[0] for square in squares)
    return {"features": first - second, "neighbours": second - third, "noise": third}


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
