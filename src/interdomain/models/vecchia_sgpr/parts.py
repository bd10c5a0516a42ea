"""Which parts of a model are used: its features, its neighbours, or both."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


class UsedParts(tf.train.experimental.PythonState):  # type: ignore[misc]
    """The name of the parts that a model uses, which is saved in checkpoints of the model.

    :ivar name: "features", "neighbours" or "both".
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def serialize(self) -> str:
        """The name, for a checkpoint."""
        return self.name

    def deserialize(self, value: Any) -> None:
        """Take the name from a checkpoint."""
        self.name = value if isinstance(value, str) else value.decode()

    def __reduce__(self) -> Any:
        """A copy has its own name."""
        return UsedParts, (self.name,)
