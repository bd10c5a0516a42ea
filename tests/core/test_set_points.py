"""Inducing patches: where they come from, and bad input to them and to their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow import kernels as gk
from gpflow.covariances import Kuu

from interdomain.inducing_variables import HarmonicInducingPoints, InducingPatches
from interdomain.kernels import Convolutional, MultiChannelConvolutional
from tests.conformance.helpers import assert_refused
from tests.families.images.references import numbered_patches


def conv(**options: Any) -> Convolutional:
    return Convolutional(gk.SquaredExponential(), (3, 4), (2, 2), **options)


def multi(**options: Any) -> MultiChannelConvolutional:
    return MultiChannelConvolutional(gk.SquaredExponential(), (3, 4, 2), (2, 2), **options)


def images(num: int, num_columns: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num, num_columns))


def rows(array: Any) -> list[tuple[float, ...]]:
    return [tuple(row) for row in np.asarray(array)]


def test_unique_patches() -> None:
    kernel, X = conv(padding="SAME", stride=(1, 2)), images(3)
    points = InducingPatches.from_data(kernel, X, 15)
    columns = numbered_patches((3, 4), (2, 2), (1, 2), "SAME")
    patches = np.append(X, np.zeros((3, 1)), axis=1)[:, columns].reshape(-1, 4)
    assert len(set(rows(points.Z))) == 15 and set(rows(points.Z)) <= set(rows(patches))
    again, other = (InducingPatches.from_data(kernel, X, 15, seed=s) for s in (0, 1))
    np.testing.assert_array_equal(points.Z, again.Z)
    assert rows(other.Z) != rows(points.Z)


def test_repeated_patches_of_binary_images() -> None:
    """16 different patches among 300: each of them is found, once."""
    X = np.random.default_rng(0).integers(0, 2, size=(50, 12)).astype(float)
    points = InducingPatches.from_data(conv(), X, 16)
    assert sorted(rows(points.Z)) == sorted(np.ndindex(2, 2, 2, 2))
    with pytest.raises(ValueError, match="num_inducing must be an integer from 1 to 16, found 17"):
        InducingPatches.from_data(conv(), X, 17)


def test_patches_of_all_channels() -> None:
    X = images(4, 24)
    X[:, 1::2] += 100.0
    points = InducingPatches.from_data(multi(), X, 12)
    patches = X[:, numbered_patches((3, 4, 2), (2, 2), separate_channels=True)].reshape(-1, 4)
    means = points.Z.numpy().mean(axis=1)
    assert (means > 50).any() and (means < 50).any()
    assert set(rows(points.Z)) <= set(rows(patches))


X12 = images(2)
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: InducingPatches.from_data(gk.RBF(), X12, 3),
        "kernel must be a Convolutional or a MultiChannelConvolutional, found SquaredExponential",
    ),
    (lambda: multi()(X12), r"X must have 24 columns for images of shape \(3, 4, 2\), found 12"),
    (lambda: multi(weights=np.ones(6)), r"weights must be .* of shape \[6, 2\], .* found shape"),
    (
        lambda: Kuu(HarmonicInducingPoints(np.zeros((2, 3, 4))).inducing_variables[0], conv()),
        "kernel must be a part of a HarmonicKernel, found Convolutional; use InducingPatches or",
    ),
]


def test_errors() -> None:
    assert_refused(ERRORS)
