"""The trainers of :func:`interdomain.fit`: the base class, and the trainer for any loss."""

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
"""The options of SciPy's L-BFGS-B that ``fit`` supports."""


class Trainer(abc.ABC):
    """The base class of trainers: the ways in which :func:`interdomain.fit` trains models.

    A class of models registers its trainer with :func:`trainer_of`.

    :param optimizer: The argument of :func:`interdomain.fit`.
    :cvar steps: The default number of steps.
    :cvar every: The default number of steps between two callbacks.
    :cvar subset_size: The rows of a random subset to begin with; None for no such option.
    :cvar subset_steps: The default number of steps on the subset.
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
        """Raise a ValueError if data and batch size do not suit the model."""

    @abc.abstractmethod
    def fit(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        """Train the model.

        :param options: The options of ``fit`` that are not attributes of the plan.
        """

    def refuse(
        self, options: Mapping[str, Any], known: Collection[str] | None = None, how: str = ""
    ) -> None:
        """Raise a ValueError for options that are not ``known``, by default :attr:`options`.

        :param how: The method, in words.
        """
        unknown = [name for name in options if name not in (known or self.options)]
        if unknown:
            raise ValueError(
                f"options: training a {type(self.model).__name__}{how} has no "
                f"{', '.join(unknown)}; leave these out, the documentation of fit has all options."
            )


class LossTrainer(Trainer):
    """Training of ``model.training_loss`` by L-BFGS, or by gradient steps on minibatches."""

    def check_data(self, data: Data, batch_size: int | None) -> None:
        """Store the data, which are checked when batches are made from them."""
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
        if batches.arrays is not None:  # a Dataset's first batch is checked
            warn_of_data(model, *batches.arrays)
        method: LBFGS | GradientSteps
        if by_lbfgs:
            method = LBFGS(model, batches.batch(0), options)
        else:
            method = GradientSteps(model, batches, replicas, self._optimizer)
        return train(model, method, plan, replicas)


@singledispatch
def trainer_of(model: Any, optimizer: Optimizer) -> Trainer:
    """The trainer of a model, by the class of the model. Modules ``training`` of models register
    trainers; all other models are trained on their loss."""
    return LossTrainer(model, optimizer)
