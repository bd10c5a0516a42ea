"""MNIST whose images are flipped or shifted at random."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._lib.data import Array, load_images
from benchmarks._lib.runner import Configuration


@dataclass(frozen=True)
class Digits:
    """Transformed images, flattened, pixels between 0 and 1."""

    X_train: Array  # [N, pixels^2]
    Y_train: NDArray[np.int64]  # [N, 1]
    X_test: Array
    Y_test: NDArray[np.int64]


def load_digits(configuration: Configuration, data_dir: Path | None) -> Digits:
    """MNIST, a random part of its training images, transformed as the task says."""
    images = load_images("mnist", data_dir)
    generator = np.random.default_rng(configuration["seed"])
    transform = {"flip": randomly_flipped, "translate": randomly_shifted}[configuration["task"]]
    chosen = generator.permutation(len(images.X_train))[: configuration["images"]]
    tested, pixels = slice(configuration["test_images"]), configuration["pixels"]
    return Digits(
        flattened(transform(images.X_train[chosen], generator), pixels),
        images.Y_train[chosen, None],
        flattened(transform(images.X_test[tested], generator), pixels),
        images.Y_test[tested, None],
    )


def randomly_flipped(images: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Each of the images [N, H, W] flipped along each axis with probability one half."""
    flips = generator.integers(2, size=(len(images), 2)).astype(bool)
    images = np.where(flips[:, 0, None, None], images[:, ::-1], images)
    return np.where(flips[:, 1, None, None], images[:, :, ::-1], images)


def randomly_shifted(images: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
    """Each of the images [N, H, W] shifted cyclically along both axes."""
    shifts = generator.integers(images.shape[1], size=(len(images), 2))
    return np.stack(
        [
            np.roll(image, tuple(shift), axis=(0, 1))
            for image, shift in zip(images, shifts, strict=True)
        ]
    )


def flattened(images: NDArray[Any], pixels: int) -> Array:
    """Means over squares, so that [N, pixels^2] are left; between 0 and 1."""
    square = images.shape[1] // pixels
    squares = images.reshape(len(images), pixels, square, pixels, square)
    return np.asarray(squares.mean(axis=(2, 4)).reshape(len(images), -1) / 255.0)
