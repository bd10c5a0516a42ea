"""Whether the rival that no extra installs is there."""

from __future__ import annotations

import importlib.util


def has_gpytorch() -> bool:
    """Whether GPyTorch is installed; it is not imported."""
    return importlib.util.find_spec("gpytorch") is not None
