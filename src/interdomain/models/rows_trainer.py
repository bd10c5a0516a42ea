"""What the training of all models that hold rows has in common."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

from ..training.data_checks import Data, check_internal
from ..training.results import FitResult
from ..training.run import Plan
from ..training.trainer import Trainer


class RowsTrainer(Trainer):
    """The training of a model that holds its rows: it may begin on a random subset of these.

    :cvar how: How the model is trained, for the message that refuses an optimizer.
    :cvar remedy: What to do instead.
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
        """Train the model, when all arguments are checked."""
