"""The grid on which predictions are stored, and how they are packed into a record."""

from __future__ import annotations

import base64
import zlib

import numpy as np

from benchmarks._lib.data import Array

GRID = 60  # predictions are stored on a grid of GRID x GRID inputs
MARGIN = 0.5  # around the training inputs


def grid_axes(X: Array) -> tuple[Array, Array]:
    """The two axes of the grid of stored predictions."""
    first, second = (
        np.linspace(column.min() - MARGIN, column.max() + MARGIN, GRID) for column in X.T
    )
    return first, second


def packed(probabilities: Array) -> str:
    """Probabilities in steps of 1/255, compressed, as text."""
    values = np.round(255 * probabilities).astype(np.uint8)
    return base64.b64encode(zlib.compress(values.tobytes(), 9)).decode()


def unpacked(text: str) -> Array:
    """What `packed` has packed, [GRID, GRID]."""
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    return values.reshape(GRID, GRID) / 255.0
