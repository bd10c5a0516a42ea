"""What makes the whole suite faster and changes nothing of what it tests."""

from __future__ import annotations

import functools
import gc
import os
import sys
import typing

# Before TensorFlow reads them. The tests compile with XLA to see whether and what it computes; how
# well LLVM optimises the machine code does not matter, and takes about a sixth of the time.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0".strip()
)

if sys.version_info < (3, 12):
    # TensorFlow asks for each tensor whether it is an instance of some protocols, and Python before
    # 3.12 then collects a protocol's attributes anew each time: 7 to 10% of an eager objective.
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)


def pytest_collection_finish() -> None:
    """What has been imported by now stays: the collector of garbage need not go through it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
