"""The mean of a layer of activation features is a dense layer of tf_keras."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.covariances import Kuu
from scipy.special import eval_gegenbauer

from interdomain import deep
from interdomain.inducing_variables import ActivationFeatures
from interdomain.kernels import ArcCosine

from .cases import NUM_DATA, make_data, randomise


def relu_up_to(degree: int, dimension: int) -> Any:
    """The ReLU's Gegenbauer series, its coefficients by numerical integration."""
    alpha = dimension / 2 - 1
    nodes, weights = np.polynomial.legendre.leggauss(100)
    angle = np.pi / 4 * (nodes + 1)  # where the activation is not zero
    t, measure = np.cos(angle), weights * np.sin(angle) ** (2 * alpha)
    coefficients = []
    for n in range(degree + 1):
        values = eval_gegenbauer(n, alpha, t)
        squares = 2 * np.sum(measure * values**2)  # of both halves
        coefficients.append(np.sum(measure * t * values) / squares)

    def activation(x: Any) -> Any:
        terms = [c * eval_gegenbauer(n, alpha, x) for n, c in enumerate(coefficients)]
        return np.sum(terms, axis=0)

    return activation


def make_layer(outputs: int, max_degree: int, **options: Any) -> deep.ActivationLayer:
    units = ActivationFeatures.random(3, 9, "relu", max_degree)
    kernel = ArcCosine(weight_variances=[1.0, 0.5, 2.0], variance=1.5, bias_variance=0.7)
    mean = gpflow.mean_functions.Constant(np.arange(1.0, 1 + outputs))
    return deep.ActivationLayer(kernel, units, NUM_DATA, mean, num_latent_gps=outputs, **options)


@pytest.mark.parametrize("options", [{}, {"whiten": False}, {"finite_rank": True}])
def test_the_mean_is_a_forward_pass(options: dict[str, Any], keras: Any) -> None:
    """A layer of tf_keras with weights computed apart from the library: to rounding."""
    layer = make_layer(2, 7, **options)
    randomise(layer)
    X = np.random.default_rng(1).normal(size=(20, 3))
    # Lifted by hand.
    lifted = np.hstack([X * np.sqrt([1.0, 0.5, 2.0]), np.full([20, 1], np.sqrt(0.7))])
    radius = np.linalg.norm(lifted, axis=1, keepdims=True)
    kuu = Kuu(layer.inducing_variable, layer._zonal, jitter=gpflow.default_jitter()).numpy()
    u = (
        layer.q_mu.numpy()
        if options.get("whiten") is False
        else np.linalg.cholesky(kuu) @ layer.q_mu
    )
    dense = keras.layers.Dense(9, use_bias=False)
    dense.build([None, 4])
    dense.set_weights([layer.inducing_variable.Z.numpy().T])
    hidden = relu_up_to(7, 4)(np.asarray(dense(lifted / radius)))
    readout = keras.layers.Dense(2)
    readout.build([None, 9])
    readout.set_weights([np.linalg.solve(kuu, u), np.array([1.0, 2.0])])
    expected = readout(radius * hidden)
    found, _ = layer.predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(layer.as_network()(X), found, rtol=1e-10, atol=1e-12)


def test_the_activation_approaches_the_relu() -> None:
    """With the radius as the scale a unit computes the ReLU of its input, as degrees go up."""
    t = np.linspace(-1, 1, 101)
    errors = []
    for degree in (4, 16, 64):
        layer = make_layer(1, degree)
        errors.append(np.sqrt(np.mean((layer.activation(t) - np.maximum(t, 0)) ** 2)))
    assert errors[0] > 3 * errors[1] > 9 * errors[2] and errors[2] < 2e-3


def test_finite_rank_leaves_no_noise() -> None:
    X = make_data()[0]
    X = np.hstack([X, X[:, :1]])
    whole, full = make_layer(1, 7, finite_rank=True), make_layer(1, 7)
    for layer in (whole, full):
        layer.q_sqrt.assign(1e-6 * layer.q_sqrt.numpy())
    assert np.max(whole.predict(X)[1]) < 1e-6 < 1e-2 < np.min(full.predict(X)[1])
