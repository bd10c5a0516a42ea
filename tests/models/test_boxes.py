"""Rows beyond the box of Fourier features: refused in training, and predictions there warn."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.inducing_variables import PeriodicFourierFeatures, SumInducingVariables
from interdomain.kernels import FiniteRank, Periodized
from interdomain.models import StructuredSGPR
from interdomain.regression import InvalidRowsError
from interdomain.training import fit, fit_sgpr

X = np.random.default_rng(0).uniform(size=[60, 3])
Y = np.sin(5 * X[:, :1]) * X[:, 2:]
BEYOND = np.concatenate([X, [[0.5, 0.5, 3.0]]]), np.concatenate([Y, [[0.0]]])
MESSAGE = r"1 of 61 rows of X is outside of the box .*column 2 goes from .* to 3"


def parts() -> tuple[FiniteRank, PeriodicFourierFeatures]:
    """On columns 2 and 0, in this order."""
    base = gpflow.kernels.Matern32(lengthscales=[0.3, 0.2])
    kernel = Periodized.from_data(base, X[:, [2, 0]], active_dims=[2, 0])
    features = PeriodicFourierFeatures.for_kernel(kernel, 25)
    return FiniteRank(kernel, features), features


def test_one_pass_refuses_them() -> None:
    model = StructuredSGPR(BEYOND, *parts(), noise_variance=0.1, progress=False)
    with pytest.raises(InvalidRowsError, match=MESSAGE) as error:
        fit_sgpr(model, progress=False)
    assert error.value.rows.tolist() == [60]
    assert "Periodized.from_data(base_kernel, X)" in str(error.value)


def test_minibatches_refuse_them() -> None:
    """Also of features in a sum."""
    kernel, features = parts()
    kernel = kernel + gpflow.kernels.White(0.1)
    features = SumInducingVariables([features, None])
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    model = gpflow.models.SVGP(kernel, likelihood, features, num_data=61)
    with pytest.raises(ValueError, match=rf"^data: {MESSAGE}.*the prior repeats; make the kernel"):
        fit(model, BEYOND, steps=1, batch_size=61, progress=False)


def test_predictions_warn() -> None:
    model = StructuredSGPR((X, Y), *parts(), noise_variance=0.1, progress=False)
    posterior = model.posterior()
    with pytest.warns(UserWarning, match="Xnew: 1 of 61 rows are outside of the box") as found:
        mean, _ = posterior.predict_f(BEYOND[0])
    assert found[0].filename == __file__  # the line that asked
    period = model.kernel.kernel.periods[0]
    with pytest.warns(UserWarning, match="60 of 60 rows"):
        again, _ = posterior.predict_f(X + [0, 0, period])
    np.testing.assert_allclose(again, mean[:60], rtol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        posterior.predict_f(X)
        tf.function(posterior.predict_f)(tf.constant(BEYOND[0]))  # where nothing is known of X
