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
from interdomain.posteriors.inputs import as_inputs
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


def test_a_fit_and_its_predictions_take_the_same() -> None:
    model = gpflow.models.SVGP(*parts(), num_data=4)
    fit(model, (X.astype(np.float32), Y), steps=1, progress=False)
    assert model.predict_f(X.astype(np.float32))[0].dtype == tf.float64


def test_other_types_are_refused() -> None:
    model = gpflow.models.SVGP(*parts())
    wrong: list[tuple[Callable[..., Any], str]] = [
        (lambda values: values + 1j, "complex128"),
        (lambda values: values.astype("datetime64[s]"), "datetime64"),
        (lambda values: values.astype(str), "entries"),
        (lambda values: np.full(values.shape, None), "objects"),
    ]
    for change, found in wrong:
        for name, data in {"X": (change(X), Y), "Y": (X, change(Y))}.items():
            message = f"data: {name} must be .*real numbers, found.*{found}"
            with pytest.raises(ValueError, match=message):
                fit(model, data, progress=False)
            message = f"data: {name} must be real numbers, found entries"
            with pytest.raises(ValueError, match=message):
                StructuredSGPR(data, *parts()[::2])


def test_a_dataset_of_complex_numbers_is_refused() -> None:
    dataset = tf.data.Dataset.from_tensor_slices((X + 1j, Y)).batch(2)
    with pytest.raises(ValueError, match="data: X of the Dataset must be real numbers"):
        fit(gpflow.models.SVGP(*parts(), num_data=4), dataset, progress=False)
