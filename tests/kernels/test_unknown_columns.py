"""Kernels in graphs that are built before the number of columns of X is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel, Matern32

from interdomain.inducing_variables import PeriodicFourierFeatures, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    Convolutional,
    FiniteRank,
    HarmonicKernel,
    HarmonizableComponent,
    HarmonizableMixture,
    Invariant,
    MultiChannelConvolutional,
    Periodized,
    SpectralComponent,
    SphericalMatern32,
)
from interdomain.transforms import ImageFlip, Negation, Rotation
from tests.tiers import in_tiers

X = np.random.default_rng(0).normal(size=(5, 4))
WAVES = PeriodicFourierFeatures([-1, -2], [1, 1], [[0, 0], [0, 1], [2, 1]])


def component(**options: Any) -> HarmonizableComponent:
    return HarmonizableComponent([[0.2, 0.1]], envelope=0.05, lag=0.05, **options)


def box(**options: Any) -> Periodized:
    return Periodized(Matern32(lengthscales=[0.3, 0.5]), [-1, -2], [1, 1], **options)


def flipped(base: Kernel) -> Kernel:
    """Its first part, whose number of columns the transformation knows."""
    return HarmonicKernel(base, ImageFlip((2, 2), 0)).kernels[0]


KERNELS: dict[str, Callable[[], Kernel]] = {
    "any number": lambda: ArcCosine(),
    "any number, of the chord": lambda: ChordalSquaredExponential(),
    "a weight for each": lambda: SphericalMatern32(weight_variances=[1.0, 2.0, 0.5, 1.0]),
    "a list": lambda: SphericalMatern32(active_dims=[2, 0]),
    "a slice": lambda: SphericalMatern32(active_dims=slice(1, 4, 2)),
    "all of a slice": lambda: SphericalMatern32(active_dims=slice(0, 4)),
    "finite rank": lambda: FiniteRank(ArcCosine(active_dims=[2, 0]), SphericalHarmonics(3, [0, 1])),
    "image": lambda: Convolutional(Matern32(), (2, 2), (1, 2)),
    "image in columns": lambda: Convolutional(Matern32(), (3, 1), (1, 1), active_dims=[3, 0, 1]),
    "image in channels": lambda: MultiChannelConvolutional(Matern32(), (2, 1, 2), (1, 1)),
    "orbit": lambda: Invariant(Matern32(), Rotation(3), active_dims=[1, 2]),
    "orbit of images": lambda: Invariant(Matern32(), ImageFlip((2, 2), 0)),
    "part": lambda: flipped(Matern32()),
    "component": lambda: component(active_dims=slice(2, 4)),
    "mixture": lambda: HarmonizableMixture([component(active_dims=[3, 1])]),
    "peak": lambda: SpectralComponent([0.2, 0.1, 0.3, 0.1]),
    "box": lambda: box(active_dims=[3, 1]),
    "box of waves": lambda: FiniteRank(box(active_dims=slice(1, 3)), WAVES),
}


def compiled(function: Callable[[Any], Any], shape: list[None] | None) -> Any:
    signature = [tf.TensorSpec(shape, gpflow.default_float())]
    return tf.function(function, input_signature=signature, autograph=False)


QUICK = (
    "any number",
    "a list",
    "a slice",
    "finite rank",
    "orbit of images",
    "part",
    "mixture",
    "box",
)


@pytest.mark.parametrize("name", in_tiers(KERNELS, QUICK))
def test_kernels(name: str) -> None:
    """K of itself, of pairs and of a batch, and the variances; with all columns in K, too, as
    GPflow calls it."""
    kernel = KERNELS[name]()

    def values(X: Any) -> Any:
        return kernel(X), kernel(X, X[:2]), kernel(X, full_cov=False), kernel.K(X)

    for actual, expected in zip(compiled(values, [None, None])(X), values(X), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)
    batches = X.reshape(1, 5, 4).repeat(2, axis=0)
    actual = compiled(kernel, [None, None, None])(batches)
    np.testing.assert_allclose(actual, kernel(batches), rtol=1e-9, atol=1e-12)


REMEDY = r"tf.ensure_shape\(X, \[None, D\]\)"


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: SphericalMatern32(), [None, None]),
        (lambda: SphericalMatern32(weight_variances=[1.0, 1.0, 1.0, 1.0]), None),
        (lambda: Invariant(Matern32(), Negation()), [None, None]),
        (lambda: HarmonicKernel(Matern32(), Negation()).kernels[0], [None, None]),
    ],
    ids=["spectrum", "rank", "orbit", "part"],
)
def test_what_cannot_be_known(make: Callable[[], Kernel], shape: list[None] | None) -> None:
    kernel = make()
    with pytest.raises(ValueError, match=REMEDY):
        compiled(kernel, shape)(X)
