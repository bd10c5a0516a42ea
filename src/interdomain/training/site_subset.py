"""Parameters that features depend on, trained for any likelihood on a subset of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models import CollapsedSVGP


def train_on_subset(
    model: CollapsedSVGP,
    size: int,
    *,
    steps: int,
    seed: int,
    options: Mapping[str, Any] | None,
) -> None:
    """TODO"""
    raise NotImplementedError
