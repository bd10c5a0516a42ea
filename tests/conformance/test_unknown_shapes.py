"""Graphs built before the number of columns of X, or even its rank, is known.

Here of the models of this library; of SVGP with each class in test_classes.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    InducingPatches,
    IntervalFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import ArcCosine, Convolutional, HarmonicKernel, SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP, StructuredSGPR
from interdomain.transforms import ImageFlip

from .helpers import assert_close, value_and_gradients

SHAPES = {"columns": [None, None], "rank": None}
Data = tuple[np.ndarray, np.ndarray]


def compiled(function: Callable[..., Any], shape: list[None] | None, *, inputs: int = 1) -> Any:
    signature = [tf.TensorSpec(shape, gpflow.default_float())] * inputs
    return tf.function(function, input_signature=signature, autograph=False)


def assert_elbo_and_gradients(model: gpflow.models.SVGP, data: Data, unknown: str) -> None:
    variables = model.trainable_variables

    def objective(X: Any, Y: Any) -> Any:
        return value_and_gradients(lambda: model.elbo((X, Y)), variables)

    (value, gradients), expected = (
        compiled(objective, SHAPES[unknown], inputs=2)(*data),
        objective(*data),
    )
    assert_close(value, expected[0])
    for variable, gradient, reference in zip(variables, gradients, expected[1], strict=True):
        assert_close(gradient, reference, rtol=1e-7, message=variable.name)


rng = np.random.default_rng(0)
X2, Y2 = rng.normal(size=(12, 2)), rng.normal(size=(12, 1))
IMAGES = rng.normal(size=(12, 6))


def gaussian() -> gpflow.likelihoods.Likelihood:
    return gpflow.likelihoods.Gaussian(0.2)


def hvgp_of_patches() -> gpflow.models.SVGP:
    """The points say nothing of X, which they are not in the space of."""
    base = Convolutional(gpflow.kernels.SquaredExponential(), (3, 2), (1, 2))
    kernel = HarmonicKernel(base, ImageFlip((1, 2), 1))
    return AdditiveSVGP(
        kernel, gaussian(), HarmonicInducingPoints.for_kernel(kernel, IMAGES[:4, :2])
    )


def additive() -> gpflow.models.SVGP:
    """One block knows the number of columns, which another kernel needs."""
    first = Convolutional(gpflow.kernels.SquaredExponential(), (3, 2), (1, 2), active_dims=range(6))
    second, third = SphericalMatern32(), gpflow.kernels.Matern32(active_dims=slice(1, 2))
    blocks = [
        InducingPatches(IMAGES[:3, :2]),
        SphericalHarmonics(7, [0, 1]),
        IntervalFourierFeatures(-5, 5, 2),
    ]
    return AdditiveSVGP(first + second + third, gaussian(), SumInducingVariables(blocks))


def orthogonal_points() -> gpflow.models.SVGP:
    kernel = SphericalMatern32()
    return OrthogonalSVGP(kernel, gaussian(), SphericalHarmonics(3, [0, 1]), InducingPoints(X2[:3]))


@pytest.mark.parametrize(
    ("make", "X", "unknown"),
    [
        (hvgp_of_patches, IMAGES, "columns"),
        (additive, IMAGES, "rank"),
        (orthogonal_points, X2, "rank"),
    ],
)
def test_models_of_several_q(
    make: Callable[[], gpflow.models.SVGP], X: np.ndarray, unknown: str
) -> None:
    model = make()
    for mean, _ in model.variational_parameters:
        mean.assign(np.random.default_rng(1).normal(size=mean.shape))
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-6)):
        assert_elbo_and_gradients(model, (X, Y2), unknown)
        function = compiled(model.posterior().predict_f, SHAPES[unknown])
        assert_close(function(X), model.predict_f(X))
        if unknown == "rank":
            sets = X.reshape(3, 4, -1)
            assert_close(function(sets), model.predict_f(sets))


def test_out_of_core() -> None:
    kernel = ArcCosine()
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, 2)
    model = StructuredSGPR((X2, Y2), kernel, harmonics, progress=False)
    for source, shape in zip((model, model.posterior()), SHAPES.values(), strict=True):
        actual = compiled(lambda X: source.predict_f(X, full_cov=True), shape)(X2)  # noqa: B023
        assert_close(actual, model.predict_f(X2, full_cov=True))


def test_another_number_of_columns() -> None:
    """Rows of one number of columns are never taken for more rows of another."""
    model = gpflow.models.SVGP(ArcCosine(), gaussian(), SphericalHarmonics(3, [0, 1]))
    for shape in SHAPES.values():
        function = compiled(model.predict_f, shape)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not compatible with expected sh"):
            function(IMAGES)
