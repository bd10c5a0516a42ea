"""Kernels in graphs that are built before the number of columns of X is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel, Matern32

from interdomain.inducing_variables import PeriodicFourierFeatures
from interdomain.kernels import (
    Convolutional,
    FiniteRank,
    HarmonicKernel,
    Invariant,
    Periodized,
    SphericalMatern32,
)
from interdomain.transforms import ImageFlip, Negation

X = np.random.default_rng(0).normal(size=(5, 4))
WAVES = PeriodicFourierFeatures([-1, -2], [1, 1], [[0, 0], [0, 1], [2, 1]])


def box(**options: Any) -> Periodized:
    return Periodized(Matern32(lengthscales=[0.3, 0.5]), [-1, -2], [1, 1], **options)


KERNELS: dict[str, Callable[[], Kernel]] = {
    "image in columns": lambda: Convolutional(Matern32(), (3, 1), (1, 1), active_dims=[3, 0, 1]),
    "orbit of images": lambda: Invariant(Matern32(), ImageFlip((2, 2), 0)),
    "part": lambda: HarmonicKernel(Matern32(), ImageFlip((2, 2), 0)).kernels[0],
    "box of waves": lambda: FiniteRank(box(active_dims=slice(1, 3)), WAVES),
}
"""The others: in tests/kernels/test_contract.py."""


def compiled(function: Callable[[Any], Any], shape: list[None] | None) -> Any:
    signature = [tf.TensorSpec(shape, gpflow.default_float())]
    return tf.function(function, input_signature=signature, autograph=False)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    """K of itself, the variances, and K of a batch."""
    kernel = KERNELS[name]()
    batches = X.reshape(1, 5, 4).repeat(2, axis=0)

    def values(X: Any, batches: Any) -> Any:
        return kernel(X), kernel(X, full_cov=False), kernel(batches)

    signature = [tf.TensorSpec([None] * rank, tf.float64) for rank in (2, 3)]
    function = tf.function(values, input_signature=signature, autograph=False)
    for actual, expected in zip(function(X, batches), values(X, batches), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


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
