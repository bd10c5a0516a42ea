"""Predictions beyond the box of Fourier features warn; training there is refused."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import FiniteRank, Periodized
from interdomain.models import StructuredSGPR

ROWS = np.random.default_rng(0).uniform(size=[60, 3])
TARGETS = np.sin(5 * ROWS[:, :1]) * ROWS[:, 2:]


def test_predictions_warn() -> None:
    """Of a kernel on columns 2 and 0, in this order."""
    base = gpflow.kernels.Matern32(lengthscales=[0.3, 0.2])
    kernel = Periodized.from_data(base, ROWS[:, [2, 0]], active_dims=[2, 0])
    features = BoxFourierFeatures.for_kernel(kernel, 25)
    prior = FiniteRank(kernel, features)
    model = StructuredSGPR((ROWS, TARGETS), prior, features, noise_variance=0.1, progress=False)
    posterior, beyond = model.posterior(), np.concatenate([ROWS, [[0.5, 0.5, 3.0]]])
    with pytest.warns(UserWarning, match="Xnew: 1 of 61 rows are outside of the box") as found:
        mean, _ = posterior.predict_f(beyond)
    assert found[0].filename == __file__  # the line that asked
    with pytest.warns(UserWarning, match="60 of 60 rows"):
        again, _ = posterior.predict_f(ROWS + [0, 0, kernel.periods[0]])
    np.testing.assert_allclose(again, mean[:60], rtol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        posterior.predict_f(ROWS)
        tf.function(posterior.predict_f)(tf.constant(beyond))  # where nothing is known of X
