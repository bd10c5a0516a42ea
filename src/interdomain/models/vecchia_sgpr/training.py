"""How a :class:`interdomain.models.VecchiaSGPR` is trained: features and neighbours in turn."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from ..._arguments import Array, choice
from ...training.results import FitResult, Parts
from ...training.run import Plan, train
from ...training.trainer import Trainer, trainer_of
from ..noise import noise_variance_of
from ..rows_trainer import RowsTrainer
from ..structured_sgpr.model import StructuredSGPR
from ..structured_sgpr.training import fit_structured, trainer_of_sums
from .local_kernel import Conditionals, conditional_weights
from .model import VecchiaSGPR
from .samples import chances_of_rows, sample_of, warn_of_rows
from .turns import FEW, Turns

_STEPS_OF_FEATURES = 1_000


class VecchiaTrainer(RowsTrainer):
    """The fit of a VecchiaSGPR with neighbours: see :func:`interdomain.fit`. Steps are turns."""

    steps, every = 8, 1
    options = ("parts",)
    how = "in turns"

    def train(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        return fit_vecchia(self.model, plan, options.get("parts"))


@trainer_of.register(VecchiaSGPR)
def trainer_of_neighbours(model: VecchiaSGPR, optimizer: Any) -> Trainer:
    """How a VecchiaSGPR is trained: in turns, if it has neighbours; otherwise on sums."""
    has_neighbours = model.num_neighbours > 0
    return (VecchiaTrainer if has_neighbours else trainer_of_sums)(model, optimizer)


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
    X, Y, places, points, known, of_rows = sample_of(model, FEW, seed, chances)
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
