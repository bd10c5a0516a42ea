"""Training of a :class:`interdomain.models.VecchiaSGPR`: features and neighbours in turn."""

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
from ...training.results import FitResult, LocalKernels, Parts
from ...training.run import Plan, train
from ...training.trainer import Trainer, trainer_of
from ..noise import noise_variance_of
from ..rows_trainer import RowsTrainer
from ..structured_sgpr.model import StructuredSGPR
from ..structured_sgpr.training import fit_structured, trainer_of_sums
from .choice import LocalTraining
from .local_kernel import conditional_weights
from .mean import solve_mean
from .model import VecchiaSGPR
from .samples import Samples, warn_of_rows
from .turns import Turns, fit_intervals

_STEPS_OF_FEATURES, _ROWS_OF_SHARES = 1_000, 1_024


class VecchiaTrainer(RowsTrainer):
    """The training of a VecchiaSGPR with neighbours, in turns: see :func:`interdomain.fit`."""

    steps, every = 8, 1
    options = ("parts", "predict_at")
    how = "in turns"

    def train(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        return fit_vecchia(self.model, plan, options.get("parts"), options.get("predict_at"))


@trainer_of.register(VecchiaSGPR)
def trainer_of_neighbours(model: VecchiaSGPR, optimizer: Any) -> Trainer:
    """The trainer of a VecchiaSGPR: in turns with neighbours; on sums over rows without."""
    has_neighbours = model.num_neighbours > 0
    return (VecchiaTrainer if has_neighbours else trainer_of_sums)(model, optimizer)


def fit_vecchia(
    model: VecchiaSGPR, plan: Plan, parts: str | None, predict_at: Any = None
) -> FitResult:
    """Train features and neighbours in turns, and select the parts by their evidence.

    :param parts: The only parts to try: "features", "neighbours" or "both"; None for all three.
    :param predict_at: See :class:`.Samples`.
    """
    names = model.all_parts
    if parts is not None:
        names = (choice("parts", parts, names, "pass a kernel and its features for others"),)
    _check(model, plan)
    warn_of_rows(model)
    before = model.parts, model.local_kernel
    try:
        return _fit_parts(model, plan, names, predict_at)
    except BaseException:
        model.local_kernel = before[1]
        model.use(before[0])
        raise


def _fit_parts(model: VecchiaSGPR, plan: Plan, names: Sequence[str], predict_at: Any) -> FitResult:
    """Train each of the named parts, and select the parts of highest :attr:`_Tried.worth`."""
    results, tried = dict[str, FitResult](), dict[str, _Tried]()
    training = LocalTraining(model, plan.seed)
    compared = dict[str, LocalKernels | None]()
    explained: Callable[[Array], Any] = model.mean_function
    if tuple(names) != ("neighbours",):
        alone = _features_alone(model)
        by_lbfgs = dataclasses.replace(plan, steps=_STEPS_OF_FEATURES, every=100, callbacks=())
        results["features"] = fit_structured(alone, by_lbfgs, {})
        if plan.num_inducing is not None:
            model.kernel, model.inducing_variable = alone.kernel, alone.inducing_variable
        if "features" in names:
            bound = float(alone.elbo())
            tried["features"] = _Tried(model, "features", bound, noise=alone.likelihood)
        explained = alone.explained
    given = _Tried(model, names[-1], np.nan)
    for name in names:
        if name != "features":
            given.restore(model)
            model.use(name)
            if name == "neighbours":
                solve_mean(model, by_rows=True)
            left = model.mean_function if name == "neighbours" else explained
            turns = Turns(model, training, plan.seed, left, predict_at)
            results[name] = train(model, turns, plan)
            tried[name], compared[name] = _Tried(model, name, turns.best), training.compared
    kept = max(tried, key=lambda name: tried[name].worth)
    if kept == "features" or kept != names[-1]:  # otherwise the model has these values
        tried[kept].restore(model)
        model.search()
    if kept != "features":
        fit_intervals(model, training, plan.seed, predict_at)
    model.chooses_kernel = model.chooses_kernel and kept == "features"
    evidence = {name: each.evidence / model.num_data for name, each in tried.items()}
    fit_of_features = results.get("features")
    return dataclasses.replace(
        results[kept],
        seconds=time.perf_counter() - plan.started,
        elbo=float(model.elbo()),
        parts=Parts(evidence, kept, _shares(model, plan.seed)),
        local_kernels=compared.get(kept),
        frozen=fit_of_features.frozen if fit_of_features else (),
        choice=fit_of_features.choice if fit_of_features else None,
    )


class _Tried:
    """The values of a model's parameters, after training of the named parts.

    :param evidence: The evidence of these parts.
    :param noise: A likelihood whose parameters replace those of the model's likelihood.
    :ivar worth: The evidence minus ``log(N) / 2`` for each number in the kernels (the criterion of
        Schwarz 1978). Of two parts with equal evidence, it prefers the one with fewer numbers.
    """

    def __init__(
        self, model: VecchiaSGPR, name: str, evidence: float, *, noise: Gaussian | None = None
    ) -> None:
        self.evidence, self._name = evidence, name
        parts = {"neighbours": model.kernel, "features": model.local_kernel}
        kernels = [part for other, part in parts.items() if other != name]
        numbers = sum(np.size(p.numpy()) for kernel in kernels for p in kernel.parameters)
        self.worth = evidence - numbers * np.log(model.num_data) / 2
        self._kernel, self._weights = model.local_kernel, model.expected_weights
        variables = [p.unconstrained_variable for p in model.parameters]
        self._values = [(variable, variable.numpy()) for variable in variables]
        if noise is not None:
            for mine, other in zip(model.likelihood.parameters, noise.parameters, strict=True):
                value = other.unconstrained_variable.numpy()
                self._values.append((mine.unconstrained_variable, value))

    def restore(self, model: VecchiaSGPR) -> None:
        """Assign these values to the model, and select the parts."""
        model.use(self._name)
        model.local_kernel = self._kernel
        for variable, value in self._values:
            variable.assign(value)
        if self._weights is not model.expected_weights:
            model.weigh(self._weights)


def _features_alone(model: VecchiaSGPR) -> StructuredSGPR:
    """A model of the same rows with features alone. Its own noise includes all residuals."""
    if model.has_student_t_noise:
        noise = Gaussian(float(np.mean(np.var(model.arrays[1], axis=0))) or 1.0)
    else:
        noise = gpflow.utilities.deepcopy(model.likelihood)
    alone: StructuredSGPR = model.model_of(model.ordered.parts, likelihood=noise)
    return alone


def _check(model: VecchiaSGPR, plan: Plan) -> None:
    """:raises ValueError: For options that a fit of neighbours does not support."""
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
    """Shares of the mean square of Y minus its mean function, on a sample: see :class:`Parts`."""
    merged, by_mean = model.ordered.merged, Samples(model, model.mean_function)
    rows, shares = model.ordered.draw(_ROWS_OF_SHARES, seed, by_mean.chances)
    nearest = model.ordered.neighbours.before(rows, model.num_neighbours)
    sample = model.ordered.sample(rows, shares, nearest)
    total = by_mean.given(sample)
    by_mean.explained = model.explained
    given = by_mean.given(sample)
    counts = np.bincount(merged.groups) * len(merged.X) / len(merged.groups)
    within = merged.within.squares / merged.Y.shape[1] / len(merged.groups)
    left = given.residuals
    errors, noise = left[:, -1], float(noise_variance_of(model.likelihood))
    if model.has_neighbours:
        covariance = model.local.covariance(tf.constant(given.points))
        noises = tf.constant(noise / given.noise_weights)
        weights, log_variances = conditional_weights(covariance, tf.constant(given.mask), noises)
        errors = tf.einsum("bk,bkp->bp", weights, left) * tf.exp(log_variances / 2)[:, None]
    parts = (total.residuals[:, -1], left[:, -1], errors)
    weights = shares * counts[rows]
    squares = [float(weights @ np.mean(np.square(part), axis=1)) + within for part in parts]
    first, second, third = (square / (squares[0] or 1.0) for square in squares)
    noise_share = min(noise / (squares[0] or np.inf), third)
    return {
        "features": first - second,
        "neighbours": second - third,
        "noise": noise_share,
        "unexplained": third - noise_share,
    }
