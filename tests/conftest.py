"""What makes the whole suite faster and changes nothing of what it tests; and what all share."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

# Before TensorFlow reads them. The tests compile with XLA to see whether and what it computes; how
# well LLVM optimises the machine code does not matter, and takes about a sixth of the time.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
)


def pytest_collection_finish() -> None:
    """What has been imported by now stays: the collector of garbage need not go through it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


@pytest.fixture
def computed_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows had their features computed in passes over data, batch by batch."""
    from interdomain.streaming.features import StreamedFeatures

    computed: list[int] = []
    original = StreamedFeatures.evaluate

    def counted(self: Any, X: Any, Y: Any) -> Any:
        computed.append(len(X))
        return original(self, X, Y)

    monkeypatch.setattr(StreamedFeatures, "evaluate", counted)
    return computed
