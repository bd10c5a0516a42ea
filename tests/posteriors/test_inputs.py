"""Predictions take inputs of every real type, as `training.fit` does, and of no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import ArcCosine, FiniteRank
from interdomain.models import AdditiveSVGP, OrthogonalSVGP, StructuredSGPR
from interdomain.posteriors.blockwise import as_inputs
from interdomain.training import fit

X = np.array([[0, 1], [2, -1], [1, 1], [-2, 0]])
Y = np.array([[0.5], [1.0], [-0.5], [0.0]])


def parts() -> tuple[Any, Any, Any]:
    kernel = ArcCosine()
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, 3)
    return FiniteRank(kernel, harmonics), gpflow.likelihoods.Gaussian(), harmonics


def additive() -> Any:
    kernel, likelihood, harmonics = parts()
    return AdditiveSVGP(kernel + kernel, likelihood, SumInducingVariables([harmonics, harmonics]))


def orthogonal() -> Any:
    kernel, likelihood, _ = parts()
    harmonics = [SphericalHarmonics(3, degrees) for degrees in ([0, 1], [2])]
    return OrthogonalSVGP(kernel, likelihood, *harmonics)


def structured_sgpr() -> Any:
    kernel, _, harmonics = parts()
    return StructuredSGPR((X, Y), kernel, harmonics, progress=False)


MODELS: dict[str, Callable[[], Any]] = {
    "SVGP": lambda: gpflow.models.SVGP(*parts()),
    "AdditiveSVGP": additive,
    "OrthogonalSVGP": orthogonal,
    "StructuredSGPR": structured_sgpr,
}


@pytest.mark.parametrize("name", MODELS)
def test_integers(name: str) -> None:
    """Fused and cached, of every model."""
    model = MODELS[name]()
    posterior = model.posterior()
    expected = model.predict_f(X.astype(float))
    for found in (model.predict_f(X), model.predict_y(X), posterior.predict_f(X)):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="Xnew must be .*real numbers, found"):
        model.predict_f(X + 1j)


def test_real_types() -> None:
    kernel = ArcCosine()
    for new in (X, X.astype(np.float32), tf.constant(X), X.tolist(), X.astype(object)):
        found = as_inputs(kernel, new)
        assert found.dtype == tf.float64
        np.testing.assert_array_equal(found, X)
    for new in (X + 1j, tf.constant(X + 1j), X.astype("datetime64[s]"), X.astype(str)):
        with pytest.raises(ValueError, match="Xnew must be .*real numbers, found"):
            as_inputs(kernel, new)


def test_other_types_are_refused() -> None:
    model = gpflow.models.SVGP(*parts())
    for data, name, found in (
        ((X + 1j, Y), "X", "complex128"),
        ((X, Y.astype(str)), "Y", "entries"),
    ):
        with pytest.raises(
            ValueError, match=f"data: {name} must be .*real numbers, found.*{found}"
        ):
            fit(model, data, progress=False)
        with pytest.raises(ValueError, match=f"data: {name} must be real numbers, found entries"):
            StructuredSGPR(data, *parts()[::2])
