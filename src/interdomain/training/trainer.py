"""How ``fit`` trains a model: what every way has, and the way of models that have no own one."""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping
from functools import singledispatch
from typing import Any, ClassVar

import tensorflow as tf

from ..core.kept import build_once
from .data_checks import Data, batches_of, check_columns
from .gradient_steps import GradientSteps, Optimizer
from .lbfgs import LBFGS
from .replicas import Replicas
from .results import FitResult
from .run import Plan, train
from .scales import warn_of_data

SCIPY_OPTIONS = ("ftol", "gtol", "maxcor", "maxfun", "maxls")
"""The options of SciPy's L-BFGS-B."""


class Trainer(abc.ABC):
    """How a model is trained by :func:`interdomain.fit`.

    A class of models registers its own with :func:`trainer_of`.

    :param optimizer: As :func:`interdomain.fit` takes it.
    :cvar steps: The number of steps by default.
    :cvar every: The number of steps between two callbacks, by default.
    :cvar subset_size: The rows of a random subset to begin with; None for no such option.
    :cvar subset_steps: The number of steps on the subset, by default.
    :cvar chooses_features: Whether ``num_inducing`` lets the data choose the features.
    :cvar options: The names of further options.
    """

    steps: ClassVar[int] = 1000
    every: ClassVar[int] = 100
    subset_size: ClassVar[int | None] = None
    subset_steps: ClassVar[int] = 50
    chooses_features: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: Any, optimizer: Optimizer = None) -> None:
        self.model, self._optimizer = model, optimizer

    @abc.abstractmethod
    def check_data(self, data: Data, batch_size: int | None) -> None:
        """:raises ValueError: For data, or a batch size, that are not for the model."""

    @abc.abstractmethod
    def fit(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        """Train the model.

        :param options: Those of fit's options that are no part of the plan.
        """

    def refuse(
        self, options: Mapping[str, Any], known: Collection[str] | None = None, how: str = ""
    ) -> None:
        """:raises ValueError: For options that are not ``known``, by default :attr:`options`.

        :param how: The method, in words.
        """
        unknown = [name for name in options if name not in (known or self.options)]
        if unknown:
            raise ValueError(
                f"options: training a {type(self.model).__name__}{how} has no "
                f"{', '.join(unknown)}; leave these out, the documentation of fit has all options."
            )


class LossTrainer(Trainer):
    """L-BFGS, or gradient steps on minibatches, on ``model.training_loss``."""

    def check_data(self, data: Data, batch_size: int | None) -> None:
        """Data are checked when batches are made of them."""
        self._data, self._batch_size = data, batch_size

    def fit(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        model, data, batch_size = self.model, self._data, self._batch_size
        by_lbfgs = batch_size is None and self._optimizer is None
        by_lbfgs &= not isinstance(data, tf.data.Dataset)
        self.refuse(options, *((SCIPY_OPTIONS, "") if by_lbfgs else (None, " by minibatches")))
        replicas = Replicas.of(model)
        strategy = replicas.strategy
        if by_lbfgs and strategy is not None:
            raise ValueError(
                f"batch_size: L-BFGS runs on one device, and the model is under a "
                f"{type(strategy).__name__}; pass a batch_size or an optimizer."
            )
        batches = batches_of(model, data, batch_size=batch_size, seed=plan.seed, strategy=strategy)
        columns = batches.columns
        build_once(model, "checked", columns, lambda: check_columns(model, columns))
        if batches.arrays is not None:  # of a Dataset, the first batch is looked at
            warn_of_data(model, *batches.arrays)
        method: LBFGS | GradientSteps
        if by_lbfgs:
            method = LBFGS(model, batches.batch(0), options)
        else:
            method = GradientSteps(model, batches, replicas, self._optimizer)
        return train(model, method, plan, replicas)


@singledispatch
def trainer_of(model: Any, optimizer: Optimizer) -> Trainer:
    """How a model is trained, by the class of the model. A model's ``training`` registers its own
    way; all others are trained on their loss."""
    return LossTrainer(model, optimizer)
