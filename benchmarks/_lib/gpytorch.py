"""Whether the rival that no extra installs is there."""

from __future__ import annotations

import importlib.util
import sys


def has_gpytorch(benchmark: str) -> bool:
    """Whether GPyTorch is installed, which is said if it is not; it is not imported."""
    found = importlib.util.find_spec("gpytorch") is not None
    if not found:
        print(
            f"{benchmark}: GPyTorch is not installed, its side is left out; benchmarks/README.md "
            "says how to install it",
            file=sys.stderr,
        )
    return found
