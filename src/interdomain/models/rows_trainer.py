"""What the training of all models that hold rows has in common."""

from __future__ import annotations

from ..training.data import Data, check_internal
from ..training.trainer import Trainer


class RowsTrainer(Trainer):
    """The training of a model that holds its rows: it may begin on a random subset of these."""

    subset_size = 5_000
    chooses_features = True

    def check_data(self, data: Data, batch_size: int | None) -> None:
        check_internal(self.model, data, batch_size)
