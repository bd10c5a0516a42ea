"""Rounding errors of squared distances, and what the kink of a Matern-1/2 kernel makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern12

from interdomain.core.point_sums import radial_terms
from interdomain.families.harmonic.orbit_sums import orbit_sums
from interdomain.linalg.radial_terms import matern12, squared_distances


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("num_columns", [1, 25, 400])
def test_rounding_error(dtype: type, num_columns: int) -> None:
    """Rows and themselves, near the origin and far away, are below it, and not by far."""
    rng, ratios = np.random.default_rng(num_columns), []
    for centre, scale in ((0.0, 1.7), (30.0, 1e-4), (1e-6, -1.0)):
        X = (centre + abs(centre or 1.0) * rng.normal(size=(300, num_columns))).astype(dtype)
        r2, error = squared_distances(X, X, tf.constant(scale, dtype))
        assert error.shape == () and error.dtype == dtype
        ratios.append(float(np.max(np.abs(np.diag(r2)))) / float(error))
    assert 0.05 < max(ratios) <= 1


def test_rows_that_coincide_pass_no_gradient_on() -> None:
    """However far they are from the origin: in both types there is a kink, and no slope of one over
    a distance that is rounding alone."""
    for dtype, radius in ((np.float64, 1.0), (np.float64, 3e4), (np.float32, 10.0)):
        X = (radius * np.random.default_rng(0).normal(size=(200, 3))).astype(dtype)
        _, slopes = matern12(*squared_distances(X, X))
        np.testing.assert_array_equal(np.diag(slopes), 0.0)


@pytest.mark.parametrize("extent", [1.0, 1e-9])
def test_rows_that_are_near_pass_theirs_on(extent: float) -> None:
    """All of them within a tiny part of a lengthscale: the derivative to it is that of -r."""
    rng = np.random.default_rng(0)
    Z, X = extent * rng.normal(size=(4, 2)), extent * rng.normal(size=(5, 2))
    kernel = Matern12(lengthscales=0.7)
    assert radial_terms(kernel) is not None
    with tf.GradientTape(persistent=True) as tape:
        points = tf.constant(Z[None, None])
        tape.watch(points)
        sums = tf.reduce_sum(orbit_sums(kernel, points, X, np.ones((1, 1, 1))))
    difference = Z[:, None] - X
    r = np.linalg.norm(difference, axis=-1)
    decay = np.exp(-r / 0.7)
    to_points = np.sum(-decay[..., None] / 0.7 * difference / r[..., None], axis=1)
    np.testing.assert_allclose(tape.gradient(sums, points)[0, 0], to_points, rtol=1e-9)
    to_lengthscale = tape.gradient(sums, kernel.lengthscales.unconstrained_variable)
    chain = -np.expm1(-0.7)  # of softplus, whose value is 0.7
    np.testing.assert_allclose(to_lengthscale, chain * np.sum(decay * r / 0.7**2), rtol=1e-9)
