"""Operators with a dense part, and variances."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain.core.pairs import StackedBlocks
from interdomain.core.sums import placed
from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import ArcCosine, FiniteRank, SphericalMatern12, SphericalMatern52
from interdomain.models import StructuredSGPR
from tests.conformance.dense_twin import dense_twin
from tests.conformance.helpers import assert_close


def test_jitter_reaches_dense_blocks() -> None:
    """Blocks get the jitter of GPflow's configuration, as in its own posterior: fused, cached, and
    in the KL divergence. Blocks of different sizes."""
    kernel = gpflow.kernels.Matern52() + gpflow.kernels.Matern12(lengthscales=0.3)
    blocks = [InducingPoints(np.linspace(-2, 2, size)[:, None]) for size in (4, 7)]
    q = {"q_mu": np.ones([11, 1]), "q_sqrt": 0.3 * np.eye(11)[None], "whiten": False}
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-2)):
        model = gpflow.models.SVGP(kernel, LIKELIHOOD, SumInducingVariables(blocks), **q)
        twin = dense_twin(model)
        assert_close(model.prior_kl(), twin.prior_kl())
        for predict in (model.predict_f, model.posterior().predict_f):
            assert_close(predict(Y, full_cov=True), twin.predict_f(Y, full_cov=True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("input_dim", [1, 19])
def test_arc_cosine_variances(input_dim: int, dtype: type) -> None:
    """No NaN and no negative variance, also where the features explain nearly everything."""
    max_degree = 20 if input_dim == 1 else 2
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        for order in (0, 1, 2):
            assert_variances(ArcCosine(order), input_dim, max_degree, f"order {order}")


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("kernel_class", [SphericalMatern12, SphericalMatern52])
def test_finite_rank_variances(kernel_class: type, dtype: type) -> None:
    """The harmonics explain all of it: rounding alone decides the sign."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        largest = assert_variances(kernel_class(), input_dim=2, max_degree=6, finite_rank=True)
        assert largest < 1e3 * np.finfo(dtype).eps


def assert_variances(
    kernel: gpflow.kernels.Kernel,
    input_dim: int,
    max_degree: int,
    message: str = "",
    *,
    finite_rank: bool = False,
) -> float:
    """Check variances for a known u, where nothing is added to what the features leave: they are
    finite and not negative, fused and cached. Return the largest, relative to the prior's."""
    inducing_variable = SphericalHarmonics.for_kernel(kernel, input_dim, max_degree)
    kernel = FiniteRank(kernel, inducing_variable) if finite_rank else kernel
    X = np.random.default_rng(0).normal(size=(241, input_dim))
    X *= np.repeat([1.0, 1e-4, 1e3, 0.0], [200, 20, 20, 1])[:, None]
    X = X.astype(gpflow.default_float())
    mean = tf.ones([inducing_variable.num_inducing, 1], gpflow.default_float())
    prior = kernel(X, full_cov=False).numpy()
    assert np.all(prior > 0)
    largest = 0.0
    posterior = gpflow.posteriors.create_posterior(kernel, inducing_variable, mean, None, False)
    for prediction in (posterior.predict_f(X), posterior.fused_predict_f(X)):
        mean_f, variance = (part.numpy()[:, 0] for part in prediction)
        assert np.all(np.isfinite(mean_f)) and np.all(np.isfinite(variance)), message
        assert np.all(variance >= 0), message
        assert np.all(variance <= prior), message
        largest = max(largest, float(np.max(variance / prior)))
    return largest


# Predictions take inputs of every real type, as `idm.fit` does, and of no other.

X = np.array([[0, 1], [2, -1], [1, 1], [-2, 0]])
Y = np.array([[0.5], [1.0], [-0.5], [0.0]])
KERNEL, LIKELIHOOD = ArcCosine(), gpflow.likelihoods.Gaussian()
HARMONICS = SphericalHarmonics(3, [0, 1, 2])


@pytest.mark.parametrize(
    "make",
    [
        lambda: gpflow.models.SVGP(KERNEL, LIKELIHOOD, HARMONICS),
        lambda: StructuredSGPR((X, Y), KERNEL, HARMONICS, progress=False),
    ],
    ids=["SVGP", "StructuredSGPR"],
)
def test_types_of_inputs(make: Callable[[], Any]) -> None:
    """Fused and cached, of every model."""
    model = make()
    posterior = model.posterior()
    expected = model.predict_f(X.astype(float))
    for new in (X, X.astype(np.float32), tf.constant(X), X.tolist(), X.astype(object)):
        for found in (model.predict_f(new), model.predict_y(new), posterior.predict_f(new)):
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)
    for new in (X + 1j, tf.constant(X + 1j), X.astype("datetime64[s]"), X.astype(str)):
        with pytest.raises(ValueError, match="Xnew must be real numbers.* found"):
            model.predict_f(new)


def test_a_posterior_without_a_cholesky_factor_is_refused() -> None:
    """GPflow refuses the same point twice; its message is added if TensorFlow has none."""
    twice = InducingPoints(np.zeros([2, 1]))
    blocks = SumInducingVariables([twice, InducingPoints(np.ones([1, 1]))])
    kernel = gpflow.kernels.Matern52() + gpflow.kernels.Matern12()
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        model = gpflow.models.SVGP(kernel, LIKELIHOOD, blocks)
        with pytest.raises(tf.errors.InvalidArgumentError, match="has no Cholesky factor, or q"):
            model.posterior()


def test_a_batch_is_not_changed() -> None:
    batch = StackedBlocks([(InducingPoints(np.zeros([2, 1])), gpflow.kernels.Matern12())], [0])
    assert placed(batch, [3]).positions == (3,) and batch.positions == (0,)
