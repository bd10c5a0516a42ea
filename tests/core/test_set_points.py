"""Inducing patches: where they come from, and bad input to them and to their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow import kernels as gk
from gpflow.covariances import Kuu

from interdomain.inducing_variables import HarmonicInducingPoints, InducingPatches
from interdomain.kernels import Convolutional, HarmonicKernel, MultiChannelConvolutional
from interdomain.transforms import ImageFlip
from tests.conformance.helpers import assert_refused
from tests.families.images.references import numbered_patches


def conv(**options: Any) -> Convolutional:
    return Convolutional(gk.SquaredExponential(), (3, 4), (2, 2), **options)


def located(**options: Any) -> Convolutional:
    return conv(location_kernel=gk.SquaredExponential(), **options)


def multi(**options: Any) -> MultiChannelConvolutional:
    return MultiChannelConvolutional(gk.SquaredExponential(), (3, 4, 2), (2, 2), **options)


def images(num: int, num_columns: int = 12, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num, num_columns))


def all_patches(X: np.ndarray, *arguments: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """``[N P, E]``, and their places ``[N P, 2]``."""
    columns, places = numbered_patches(*arguments, **options)
    padded = np.concatenate([X, np.zeros((len(X), 1))], axis=1)
    return padded[:, columns].reshape(-1, columns.shape[1]), np.tile(places, (len(X), 1))


def rows(*arrays: Any) -> list[tuple[float, ...]]:
    return [tuple(row) for row in np.concatenate([np.asarray(a) for a in arrays], axis=1)]


@pytest.mark.parametrize("make", [conv, located])
def test_unique_patches(make: Callable[..., Convolutional]) -> None:
    """With their places where these matter."""
    kernel, X = make(padding="SAME", stride=(1, 2)), images(3)
    points = InducingPatches.from_data(kernel, X, 15)
    assert points.Z.shape == (15, 4) and (points.locations is None) == (make is conv)
    assert points.num_inducing == 15 and points.shape == (15, None, 1)
    patches, places = all_patches(X, (3, 4), (2, 2), (1, 2), "SAME")
    found, possible = rows(points.Z), rows(patches)
    if points.locations is not None:
        found, possible = rows(points.Z, points.locations), rows(patches, places)
        assert len({tuple(place) for place in points.locations.numpy()}) > 3
    assert len(set(found)) == 15 and set(found) <= set(possible)
    again, other = (InducingPatches.from_data(kernel, X, 15, seed=s) for s in (0, 1))
    np.testing.assert_array_equal(points.Z, again.Z)
    assert rows(other.Z) != rows(points.Z)


def test_repeated_patches_of_binary_images() -> None:
    """16 different patches among 300: each of them is found, once."""
    X = np.random.default_rng(0).integers(0, 2, size=(50, 12)).astype(float)
    points = InducingPatches.from_data(conv(), X, 16)
    assert sorted(rows(points.Z)) == sorted(np.ndindex(2, 2, 2, 2))
    message = (
        "num_inducing must be at most 16, the number of different patches in X, found 17; pass a"
    )
    for method in ("unique", "k-means"):
        with pytest.raises(ValueError, match=message):
            InducingPatches.from_data(conv(), X, 17, method=method)
    # Equal patches in different places are different inducing patches, if places matter.
    assert InducingPatches.from_data(located(), X, 17).Z.shape == (17, 4)


def test_centres_of_clusters() -> None:
    """Four patches, each in a corner and with noise."""
    rng = np.random.default_rng(0)
    X = np.zeros((40, 16))
    colours = [0.0, 3.0, 6.0, 9.0]
    for x in X.reshape(40, 4, 4):
        for k, colour in enumerate(colours):
            x[2 * (k // 2) :, 2 * (k % 2) :] = colour
    X += 0.01 * rng.normal(size=X.shape)
    options: dict[str, Any] = {"stride": 2, "location_kernel": gk.SquaredExponential()}
    kernel = Convolutional(gk.SquaredExponential(), (4, 4), (2, 2), **options)
    for seed in range(10):  # k-means may end in a local optimum
        points = InducingPatches.from_data(kernel, X, 4, method="k-means", seed=seed)
        Z = points.Z.numpy()
        order = np.argsort(Z[:, 0])
        if np.abs(Z[order] - np.array(colours)[:, None]).max() < 0.05:
            break
    else:
        pytest.fail("no seed finds the clusters")
    corners = [[0.5, 0.5], [0.5, 2.5], [2.5, 0.5], [2.5, 2.5]]
    assert points.locations is not None
    np.testing.assert_array_equal(points.locations.numpy()[order], corners)


@pytest.mark.parametrize("method", ["unique", "k-means"])
def test_patches_of_all_channels(method: str) -> None:
    X = images(4, 24)
    X[:, 1::2] += 100.0
    points = InducingPatches.from_data(multi(), X, 12, method=method)
    assert points.Z.shape == (12, 4) and points.locations is None
    patches, _ = all_patches(X, (3, 4, 2), (2, 2), separate_channels=True)
    means = points.Z.numpy().mean(axis=1)
    assert (means > 50).any() and (means < 50).any()
    if method == "unique":
        assert set(rows(points.Z)) <= set(rows(patches))
    colour = Convolutional(gk.SquaredExponential(), (3, 4, 2), (2, 2))
    assert InducingPatches.from_data(colour, X, 5, method=method).Z.shape == (5, 8)


Z4 = np.zeros((5, 4))
X12 = images(2)
ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: InducingPatches(np.zeros(4)), r"Z must be \[M, E\], found shape \(4,\)"),
    (
        lambda: InducingPatches.from_data(gk.RBF(), X12, 3),
        "kernel must be a Convolutional or a MultiChannelConvolutional, found SquaredExponential",
    ),
    (lambda: multi()(X12), r"X must have 24 columns for images of shape \(3, 4, 2\), found 12"),
    (
        lambda: Convolutional(gk.RBF(), (12,), (2, 2)),
        r"image_shape must be two or three positive integers, found \(12,\); pass \(H, W\)",
    ),
    (lambda: multi(weights=np.ones(6)), r"weights must be .* of shape \[6, 2\], .* found shape"),
    (
        lambda: MultiChannelConvolutional([gk.RBF(), gk.RBF()], (3, 4, 3), (2, 2)),
        "base_kernels must be one kernel, or one for each of 3 channels, found 2",
    ),
    (lambda: HarmonicKernel(conv(), ImageFlip((3, 4), 0)).kernels[0](X12), "columns"),
    (
        lambda: Kuu(HarmonicInducingPoints(np.zeros((2, 3, 4))).inducing_variables[0], conv()),
        "kernel must be a part of a HarmonicKernel, found Convolutional; use InducingPatches or",
    ),
]


def test_errors() -> None:
    assert_refused(ERRORS)
