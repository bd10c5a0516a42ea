"""Functions drawn from layers and deep GPs have the moments of what these predict."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflux.models.deep_gp import sample_dgp

from tests.deep.cases import convolutional, harmonics, make_data, points, randomise, stacked


def test_a_deep_gp_is_a_function() -> None:
    """One value at a place, with gradients; another draw is another function."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(6, 2))
    model = stacked(harmonics, points)
    randomise(model)
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


def test_layers_draw_functions() -> None:
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
