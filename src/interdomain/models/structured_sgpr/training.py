"""Training of a :class:`interdomain.models.StructuredSGPR`: a subset, a pass, and steps on sums."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpflow

from ..._tracing import operation_by_operation
from ...choosing import choose_features
from ...training.lbfgs import LBFGS, fit_by_lbfgs
from ...training.results import FitResult
from ...training.run import Plan, train
from ...training.trainer import SCIPY_OPTIONS, LossTrainer, Trainer, trainer_of
from ..collapsed import CollapsedModel
from ..rows_trainer import RowsTrainer


class StructuredTrainer(RowsTrainer):
    """The training of a collapsed model on sums over rows: see :func:`interdomain.fit`."""

    options = SCIPY_OPTIONS

    def train(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        return fit_structured(self.model, plan, options)


@trainer_of.register(CollapsedModel)
def trainer_of_sums(model: CollapsedModel, optimizer: Any) -> Trainer:
    """The trainer of a collapsed model: on sums over rows, or on its loss with an optimizer."""
    return StructuredTrainer(model) if optimizer is None else LossTrainer(model, optimizer)


def fit_structured(model: CollapsedModel, plan: Plan, options: Mapping[str, Any]) -> FitResult:
    """Train the features' parameters on a subset, take one pass, and train the rest on sums.

    :param options: The options of SciPy's L-BFGS-B, for the training on all rows.
    """
    subset, choice = None, None
    frozen: tuple[str, ...] = ()
    trainable = {n: p for n, p in model.feature_parameters.items() if p.trainable}
    if plan.num_inducing is not None:

        def refit(some: CollapsedModel, number: int) -> None:
            with operation_by_operation():  # compiling does not pay: its features are soon replaced
                fit_by_lbfgs(some, steps=number)

        choice, frozen, _ = choose_features(
            model,
            plan.num_inducing,
            model.model_of,
            lambda some, number: fit_by_lbfgs(some, steps=number, progress=plan.progress),
            refit=refit,
            subset_size=plan.subset_size or model.num_data,
            subset_steps=plan.subset_steps,
            seed=plan.seed,
            progress=plan.progress,
        )
    elif trainable and plan.subset_size is not None:
        some = model.model_of(model.draw(plan.subset_size, seed=plan.seed))
        folder = plan.checkpoint_dir
        subset_plan = Plan(
            time.perf_counter(),
            plan.subset_steps,
            progress=plan.progress,
            checkpoint_dir=folder and Path(folder, "subset"),
        )
        subset, frozen = train(some, LBFGS(some, (), {}), subset_plan), tuple(trainable)
        for parameter in trainable.values():
            gpflow.set_trainable(parameter, False)
    subset_done = time.perf_counter()
    if not any(parameter.trainable for parameter in model.feature_parameters.values()):
        _ = model.statistics
    pass_done = time.perf_counter()
    result = train(model, LBFGS(model, (), options), plan, may_be_done=bool(frozen))
    return dataclasses.replace(
        result,
        frozen=frozen,
        choice=choice,
        subset=subset,
        subset_seconds=subset_done - plan.started,
        pass_seconds=pass_done - subset_done,
    )
