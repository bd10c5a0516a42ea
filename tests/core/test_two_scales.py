"""The sum of two scales against two kernels of GPflow."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32

from interdomain.kernels import TwoScales

X = np.random.default_rng(0).uniform(-2, 2, size=(12, 3))


def test_it_is_the_sum_of_two_matern_kernels() -> None:
    """Values, the diagonal and gradients; of all columns and of some."""
    for lengthscales, dims in ((0.4, None), ([0.4, 0.9, 0.2], None), ([0.4, 0.9], [2, 0])):
        lengths = np.asarray(lengthscales)
        kernel = TwoScales(1.7, lengths, ratio=8.0, share=0.3, active_dims=dims)
        short = Matern32(0.3 * 1.7, lengths, active_dims=dims)
        long = Matern32(0.7 * 1.7, 8.0 * lengths, active_dims=dims)
        for X2 in (None, X[:5] + 0.1):
            np.testing.assert_allclose(kernel(X, X2), (short + long)(X, X2), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(kernel(X, full_cov=False), np.full(12, 1.7))
        assert np.linalg.eigvalsh(kernel(X)).min() > 0
        weights = np.random.default_rng(1).normal(size=(12, 12))
        places, slopes = tf.constant(X), []
        for each in (kernel, short + long):
            with tf.GradientTape() as tape:
                tape.watch(places)
                value = tf.reduce_sum(weights * each(places + 0.1, X))
            slopes.append(tape.gradient(value, places))
        np.testing.assert_allclose(*slopes, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(kernel.middle, 8.0**0.5)


def test_gradients_with_respect_to_parameters() -> None:
    kernel = TwoScales(1.7, [0.4, 0.9, 0.2], ratio=8.0, share=0.3)
    variables = kernel.trainable_variables
    assert len(variables) == 4

    def value() -> tf.Tensor:
        return tf.reduce_sum(tf.sin(kernel(X)))

    with tf.GradientTape() as tape:
        total = value()
    step = 1e-6
    for variable, gradient in zip(variables, tape.gradient(total, variables), strict=True):
        direction = np.ones(variable.shape)
        at = variable.numpy()
        variable.assign(at + step * direction)
        above = value()
        variable.assign(at - step * direction)
        slope = (above - value()) / (2 * step)
        variable.assign(at)
        np.testing.assert_allclose(tf.reduce_sum(gradient), slope, rtol=1e-6, atol=1e-8)


def test_ranges() -> None:
    for ratio in (1.0, 0.5, 100.0, np.nan):
        with pytest.raises(ValueError, match="ratio must be between 1 and 100, found .* pass 10"):
            TwoScales(ratio=ratio)
    for share in (0.0, 1.0, -0.5, np.nan):
        with pytest.raises(ValueError, match="share must be between 0 and 1, found .* pass 0.5"):
            TwoScales(share=share)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        assert TwoScales(ratio=5.0)(X.astype(np.float32)).dtype == tf.float32
