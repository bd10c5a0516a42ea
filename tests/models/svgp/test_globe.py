"""Models of the globe: no seam at the date line, no jump at a pole, and what is said of rows."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import FiniteRank, GlobeMatern52
from interdomain.models import StructuredSGPR

RNG = np.random.default_rng(0)
NEAR = RNG.normal(scale=0.3, size=(600, 3)) + np.array([[-1, 0, 0], [0, 0, 1]])[:, None].repeat(
    300, axis=1
).reshape(600, 3)
X = idm.sphere.latitude_longitude(NEAR).numpy()
"""Rows around the date line and around the north pole."""
UNIT = idm.sphere.unit_vectors(X).numpy()
Y = np.sin(4 * UNIT @ [[1.0], [2.0], [-1.0]]) + 0.05 * RNG.normal(size=(600, 1))
EAST = np.stack([np.linspace(-60, 89, 9), np.full(9, 180.0)], axis=1)
WEST = EAST * [1, -1]
AT_POLE = np.stack([np.full(12, 90.0), np.linspace(-180, 150, 12)], axis=1)


def globe() -> StructuredSGPR:
    kernel = GlobeMatern52()
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=12)
    prior = FiniteRank(kernel, harmonics)
    return StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.01, progress=False)


def test_no_seam_and_no_jump() -> None:
    """Mean and standard deviation are smooth at the date line, and at a pole for all longitudes."""
    posterior = globe().posterior()

    def predict(inputs: np.ndarray) -> np.ndarray:
        mean, variance = posterior.predict_f(inputs)
        return np.concatenate([mean, np.sqrt(variance)], axis=1)

    assert np.max(np.abs(predict(EAST) - predict(WEST))) < 1e-12
    around = predict(EAST - [0, 1e-6]) - predict(WEST + [0, 1e-6])
    assert np.max(np.abs(around)) < 1e-6
    assert np.max(np.ptp(predict(AT_POLE), axis=0)) < 1e-12
    assert np.min(np.ptp(predict(EAST), axis=0)) > 0.01  # elsewhere they vary


def test_new_rows_beyond_a_pole_are_refused() -> None:
    """Arrays past a pole are refused; a tensor may hold points that a training step moved there."""
    kernel = GlobeMatern52(active_dims=[1, 2])
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    beyond = np.array([[0.0, 10.0, 20.0], [0.0, 95.0, 3.0]])
    for predict in (model.predict_f, model.posterior().predict_f):
        with pytest.raises(ValueError, match="^Xnew must have latitudes.* found 10 to 95"):
            predict(beyond)
        assert predict(tf.constant(beyond))[0].shape == (2, 1)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):  # too few columns
        model.predict_f(beyond[:, :2])
