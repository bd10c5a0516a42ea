"""The base class of the trainers of models that hold their rows."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from ..training.data_checks import Data, check_internal
from ..training.results import FitResult
from ..training.run import Plan
from ..training.trainer import Trainer


class RowsTrainer(Trainer):
    """The training of a model that holds its rows. It may begin on a random subset of the rows.

    :cvar how: The way of training, for the error message about an optimizer.
    :cvar remedy: The advice in this message.
    """

    subset_size = 5_000
    chooses_features = True
    how: ClassVar[str]
    remedy: ClassVar[str] = "leave optimizer out"

    def check_data(self, data: Data, batch_size: int | None) -> None:
        check_internal(self.model, data, batch_size)

    def fit(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        if self._optimizer is not None:
            raise ValueError(
                f"optimizer: a {type(self.model).__name__} is trained {self.how}, found "
                f"{self._optimizer!r}; {self.remedy}."
            )
        self.refuse(options)
        result = self.train(plan, options)
        self.model.check_spacing()
        return result

    @abc.abstractmethod
    def train(self, plan: Plan, options: Mapping[str, Any]) -> FitResult:
        """Train the model, after all arguments are checked."""
