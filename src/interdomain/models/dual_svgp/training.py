"""Training of a :class:`interdomain.models.DualSVGP`: passes, and steps without data."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from typing import Any

import gpflow

from ..._arguments import Array, number, warn
from ...choosing import choose_features
from ...training.results import FitResult
from ...training.run import Plan, train
from ...training.trainer import trainer_of
from ..rows_trainer import RowsTrainer
from .model import DualSVGP
from .passes import Passes
from .subset import RowsWithSites

_LARGE = 4  # times the rows of the subset: with fewer rows, training starts without a subset
_GROWTH = 2.0  # the factor by which chosen features grow in a round


@trainer_of.register(DualSVGP)
class DualTrainer(RowsTrainer):
    """The training of a DualSVGP: see :func:`interdomain.fit`."""

    steps, every = 20, 1
    subset_size, subset_steps = 3_000, 25
    options = ("tolerance",)
    how = "in passes"
    remedy = "leave optimizer out, or pass model.to_svgp() to train with minibatches"

    def train(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        return fit_dual(self.model, plan, options.get("tolerance"))


def fit_dual(model: DualSVGP, plan: Plan, tolerance: float | None) -> FitResult:
    """Train on a subset if rows are many or features are trained, then in passes over all rows."""
    if tolerance is not None:
        number("tolerance", tolerance, at_least=0)
    trainable = {n: p for n, p in model.feature_parameters.items() if p.trainable}
    choice, frozen, some = None, tuple(trainable), None
    size = plan.subset_size or model.num_data

    def with_sites(rows: tuple[Array, ...]) -> RowsWithSites:
        made: RowsWithSites = model.model_of(rows, RowsWithSites)
        made.tolerance = tolerance
        return made

    if plan.num_inducing is not None:
        choice, frozen, some = choose_features(
            model,
            plan.num_inducing,
            with_sites,
            RowsWithSites.train,
            growth=_GROWTH,
            subset_size=size,
            subset_steps=plan.subset_steps,
            seed=plan.seed,
            progress=plan.progress,
        )

    def begin() -> None:
        sites_of = some
        is_large = model.num_rows is None or model.num_rows > _LARGE * size
        if sites_of is None and (trainable or is_large):
            _mark(trainable, True)
            sites_of = with_sites(model.draw(size, seed=plan.seed))
            sites_of.train(plan.subset_steps)
            _mark(trainable, False)
        if sites_of is not None:
            model.assign_sites(sites_of.sites)
        seconds.append(time.perf_counter() - plan.started)

    seconds = list[float]()
    _mark(trainable, False)
    passes = Passes(model, tolerance, begin=begin)
    result = train(model, passes, plan)
    _warn_of_ending(result, plan)
    return dataclasses.replace(
        result,
        # A fit that had already ended has no best point.
        elbo=passes.best.result.elbo if hasattr(passes, "best") else result.elbo,
        frozen=frozen,
        choice=choice,
        subset_seconds=sum(seconds),
        pass_seconds=passes.seconds,
    )


def _warn_of_ending(result: FitResult, plan: Plan) -> None:
    """Warn if a fit has not converged, except after a single pass, which need not converge."""
    remedy = (
        "pass a mean function such as gpflow.mean_functions.Constant(), and X in units of its "
        "standard deviations"
    )
    if not len(result.elbos) or plan.steps == 1:
        return
    if result.reason == "steps":
        warn(
            f"steps: the DualSVGP has not converged after {result.steps} passes ({result.message})"
            f"; call fit again, which continues, or pass steps={2 * plan.steps}; if this does not "
            f"help, {remedy}."
        )
    elif result.reason == "stalled":
        warn(
            f"model: the DualSVGP has not converged: after {result.steps} passes {result.message}; "
            f"compare predictions with the data, and {remedy}."
        )


def _mark(parameters: Mapping[str, Any], trainable: bool) -> None:
    for parameter in parameters.values():
        gpflow.set_trainable(parameter, trainable)
