"""GPflux draws functions of layers over inducing variables of this library."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

gpflux = pytest.importorskip("gpflux")

from gpflux.layers import GPLayer, LikelihoodLayer  # noqa: E402
from gpflux.models import DeepGP  # noqa: E402
from gpflux.models.deep_gp import sample_dgp  # noqa: E402
from gpflux.sampling.sample import efficient_sample  # noqa: E402

import interdomain as idm  # noqa: E402
from interdomain.deep.sampling import FunctionSample  # noqa: E402
from tests.deep.cases import convolutional, make_data, points, randomise  # noqa: E402

X = np.random.default_rng(0).uniform(-1, 1, size=(6, 2))


def harmonics(num_outputs: int, *, of_finite_rank: bool = True) -> GPLayer:
    kernel = idm.kernels.SphericalMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=3)
    prior = idm.kernels.FiniteRank(kernel, features) if of_finite_rank else kernel
    wrapper = idm.inducing_variables.SharedIndependentInducingVariables(features)
    layer = GPLayer(
        gpflow.kernels.SharedIndependent(prior, num_outputs),
        wrapper,
        num_data=20,
        num_latent_gps=num_outputs,
        mean_function=gpflow.mean_functions.Linear(np.eye(2)[:, :num_outputs]),
    )
    numbers = np.random.default_rng(3)
    layer.q_mu.assign(numbers.normal(size=layer.q_mu.shape))
    layer.q_sqrt.assign(0.4 * layer.q_sqrt.numpy())
    return layer


def test_a_layer_draws_functions_of_its_posterior() -> None:
    """The mean and covariance are those that the layer predicts."""
    tf.random.set_seed(0)
    layer = harmonics(2)
    draws = np.stack([layer.sample()(X[:3]) for _ in range(60)])
    mean, cov = layer.predict(X[:3], full_cov=True)
    errors = np.std(draws, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(np.mean(draws, axis=0) - mean) < 5 * errors)
    centred = draws - mean
    for output in range(2):
        products = centred[:, :, None, output] * centred[:, None, :, output]
        errors = np.std(products, axis=0) / np.sqrt(len(draws))
        assert np.all(np.abs(np.mean(products, axis=0) - cov[output]) < 5 * errors)


def test_a_deep_gp_is_a_function() -> None:
    """One value at a place, with gradients; another draw is another function."""
    layers = [harmonics(2), harmonics(1, of_finite_rank=False)]
    model = DeepGP(layers, LikelihoodLayer(gpflow.likelihoods.Gaussian(0.1)), num_data=20)
    function, other = sample_dgp(model), sample_dgp(model)
    values = function(X)
    assert values.shape == (6, 1)
    np.testing.assert_allclose(function(X[2:4]), values[2:4], rtol=1e-10)
    assert np.max(np.abs(other(X) - values)) > 0.1
    at = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(at)
        total = tf.reduce_sum(function(at))
    step = 1e-6 * np.ones_like(X)
    difference = tf.reduce_sum(function(X + step) - function(X - step)) / 2e-6
    np.testing.assert_allclose(tf.reduce_sum(tape.gradient(total, at)), difference, rtol=1e-6)


def test_gpflux_keeps_its_own() -> None:
    """Stock inducing variables are sampled as before."""
    points = gpflow.inducing_variables.InducingPoints(X[:3])
    sample = efficient_sample(
        points, gpflow.kernels.Matern52(), tf.zeros([3, 1], tf.float64), whiten=True
    )
    assert not isinstance(sample, FunctionSample)


def test_layers_of_this_library_draw_functions() -> None:
    """With mean and variance that the layer predicts, mean function and a trained q included."""
    tf.random.set_seed(1)
    layer = points(2, gpflow.mean_functions.Constant(np.array([1.0, -1.0])))
    randomise(layer)
    inputs = make_data()[0][:3]
    sample = layer.sample()
    np.testing.assert_allclose(sample(inputs)[1:], sample(inputs[1:]), rtol=1e-9)
    draws = np.stack([layer.sample()(inputs) for _ in range(40)])
    mean, variance = (moment.numpy() for moment in layer.predict(inputs))
    assert draws.shape[1:] == mean.shape
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(variance / 40) + 1e-9)
    # Of a normal variable, the variance of 40 has a standard error of sqrt(2 / 39) of it.
    assert np.all(np.abs(draws.var(axis=0, ddof=1) / variance - 1) < 5 * np.sqrt(2 / 39))


def test_a_convolution_draws_one_function_of_patches() -> None:
    layer = convolutional(4)  # two outputs at each of two pixels
    randomise(layer)
    images = make_data()[0][:3]
    tf.random.set_seed(2)
    of_images = layer.sample()
    tf.random.set_seed(2)
    of_pixels = layer.patch_layer.sample()
    expected = np.concatenate([of_pixels(images[:, [0]]), of_pixels(images[:, [1]])], axis=1)
    np.testing.assert_allclose(of_images(images), expected, rtol=1e-9)
