"""What makes the whole suite faster and changes nothing of what it tests."""

from __future__ import annotations

import gc
import os

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
