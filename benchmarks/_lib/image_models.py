"""Labelled images as rows of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._lib.data import Images
from benchmarks._lib.splits import Split


@dataclass(frozen=True)
class LabelledRows(Split):
    """Images as rows [N, H W C] with pixels between 0 and 1, and their classes [N, 1]."""

    shape: tuple[int, ...]  # (H, W) or (H, W, C)
    num_classes: int


def labelled_rows(
    images: Images, *, train: int, test: int, seed: int, largest: float = 255.0
) -> LabelledRows:
    """Random training images, the first test images; pixels are divided by `largest`."""
    chosen = np.random.default_rng(seed).permutation(len(images.X_train))[:train]
    num_classes = int(images.Y_train.max()) + 1
    # A Bernoulli likelihood takes floating-point labels, MultiClass integers.
    label: type[Any] = np.float64 if num_classes == 2 else np.int64
    return LabelledRows(
        X_train=images.X_train[chosen].reshape(len(chosen), -1) / largest,
        Y_train=images.Y_train[chosen, None].astype(label),
        X_test=images.X_test[:test].reshape(len(images.X_test[:test]), -1) / largest,
        Y_test=images.Y_test[:test, None].astype(label),
        shape=images.X_train.shape[1:],
        num_classes=num_classes,
    )
