"""Functions as objects: gradients, chunks, float32, copies; and errors."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern52, SquaredExponential

import interdomain as idm
from interdomain.sampling import functions as functions_module
from interdomain.sampling import sample_functions
from tests.conformance.helpers import value_and_gradients

from .moments import NUM_SAMPLES, assert_moments

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(20, 1))
Y = np.sin(4 * X) + 0.1 * rng.normal(size=(20, 1))
AT = np.linspace(-1.5, 1.5, 23)[:, None]


def regression() -> gpflow.models.GPR:
    return gpflow.models.GPR((X, Y), Matern52(lengthscales=0.5), noise_variance=0.01)


def harmonics() -> gpflow.models.SVGP:
    """Harmonics of few degrees, of which the features leave some out."""
    smooth = idm.kernels.SphericalMatern52(weight_variances=[2.0])
    kernel = idm.kernels.FreeSpectrum.from_kernel(smooth, input_dim=1, max_degree=6)
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=4)
    return gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), features)


def test_gradients_have_the_covariance_of_derivatives() -> None:
    """Gradients have the moments of the formula: the mean's derivative, and for the kernel k,
    ``d2 (k - k(x, X) (K + s I)^-1 k(X, x')) / dx dx'``."""
    model = gpflow.models.GPR((X, Y), SquaredExponential(lengthscales=0.4), noise_variance=0.01)
    functions = sample_functions(model, NUM_SAMPLES, num_features=12, seed=2)
    at = tf.constant([[-0.7], [0.1], [1.2]], gpflow.default_float())
    with tf.autodiff.ForwardAccumulator(at, tf.ones_like(at)) as accumulator:
        values = functions(at)
    slopes = accumulator.jvp(values).numpy()[:, :, 0]

    K = model.kernel(X).numpy() + 0.01 * np.eye(len(X))
    lags = at.numpy() - X.T
    cross = model.kernel(at, X).numpy() * -lags / 0.16
    mean = cross @ np.linalg.solve(K, Y)[:, 0]
    lags = at.numpy() - at.numpy().T
    cov = model.kernel(at).numpy() * (1 / 0.16 - np.square(lags / 0.16))
    cov -= cross @ np.linalg.solve(K, cross.T)

    errors = np.std(slopes, axis=0) / np.sqrt(NUM_SAMPLES)
    assert np.all(np.abs(np.mean(slopes, axis=0) - mean) < 5 * errors)
    products = (slopes - mean)[:, :, None] * (slopes - mean)[:, None, :]
    errors = np.std(products, axis=0) / np.sqrt(NUM_SAMPLES)
    assert np.all(np.abs(np.mean(products, axis=0) - cov) < 5 * errors)


def test_many_rows_are_computed_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = sample_functions(harmonics(), 3, num_features=10)

    at = tf.constant(AT)
    whole = functions(at), value_and_gradients(lambda: tf.sin(functions(at)), at)[1]
    entries = sum(of.entries_per_row for of in functions._parts[2])
    monkeypatch.setattr(functions_module, "MOST_ENTRIES", 5 * entries)
    parts = functions(at), value_and_gradients(lambda: tf.sin(functions(at)), at)[1]
    for value, expected in zip(parts, whole, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)
    assert functions(AT[:0]).shape == (3, 0, 1)


def test_training_does_not_change_functions() -> None:
    model = harmonics()
    functions = sample_functions(model, 2, num_features=10)
    before = functions(AT)
    model.kernel.variance.assign(0.1)
    model.q_mu.assign(model.q_mu + 1)
    np.testing.assert_array_equal(functions(AT), before)


def test_functions_of_finite_rank_are_combinations_of_the_features() -> None:
    """Exactly: as many functions as there are features, and one more, are linearly dependent."""
    kernel = idm.kernels.Periodized(Matern52(lengthscales=0.4), -2.0, 2.0)
    waves = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 9)
    prior = idm.kernels.FiniteRank(kernel, waves)
    model = gpflow.models.SVGP(prior, gpflow.likelihoods.Gaussian(0.1), waves)
    values = sample_functions(model, 12)(AT).numpy()[:, :, 0]
    assert np.linalg.matrix_rank(values, tol=1e-8) == 9
    assert sample_functions(model, 12)._parts[2][0].prior is None


def test_single_precision() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        model = harmonics()
        functions = sample_functions(model, NUM_SAMPLES, num_features=6)
        at = AT[::8].astype(np.float32)
        assert functions(at).dtype == tf.float32
        assert_moments(functions, at, *model.predict_f(at, full_cov=True))


def test_a_compiled_function_cannot_draw() -> None:
    model = regression()
    with pytest.raises(ValueError, match="must be called outside of compiled functions"):
        tf.function(lambda: sample_functions(model, 2)(AT), autograph=False)()
