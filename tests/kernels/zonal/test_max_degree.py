"""Kernels that end at a degree: finite rank, the spectrum otherwise unchanged."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.sphere import num_harmonics, spherical_harmonics
from tests.tiers import in_tiers

KERNELS = {
    "arc-cosine": lambda **k: ArcCosine(order=1, variance=1.7, **k),
    "arc-cosine-2": lambda **k: ArcCosine(order=2, **k),
    "matern-12": lambda **k: SphericalMatern12(lengthscale=0.4, variance=0.6, **k),
    "chordal": lambda **k: ChordalSquaredExponential(radial_power=0.0, **k),
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS)
def build(request):
    return request.param


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(7, 3))


def mercer(kernel: ZonalKernel, X: np.ndarray, max_degree: int) -> np.ndarray:
    """The kernel as an explicit sum over harmonics, one by one."""
    radius, unit = kernel.to_sphere(X)
    total = np.zeros((len(X), len(X)))
    for degree in kernel.nonzero_degrees(4, max_degree):
        eigenvalue = kernel.eigenvalues(4, [degree]).numpy()[0]
        for row in spherical_harmonics(unit, [degree]).numpy():
            total += eigenvalue * np.outer(row, row)
    scale = radius.numpy()[:, 0] ** kernel.radial_power
    return kernel.variance.numpy() * np.outer(scale, scale) * total


@pytest.mark.parametrize("max_degree", in_tiers([0, 1, 4], quick=[4]))
def test_equals_the_sum_over_harmonics(build, X, max_degree):
    kernel = build(max_degree=max_degree)
    expected = mercer(build(), X, max_degree)
    np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(X, X[:2]), expected[:, :2], atol=1e-12)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(expected), atol=1e-12)


def test_nothing_is_left_for_the_harmonics_to_explain(build, X):
    kernel = build(max_degree=3)
    harmonics = SphericalHarmonics.for_kernel(kernel, 3, max_degree=9)
    assert harmonics.degrees == kernel.nonzero_degrees(4, 3)
    Kuf = gpflow.covariances.Kuf(harmonics, kernel, X)
    Kuu = gpflow.covariances.Kuu(harmonics, kernel)
    Qff = tf.matmul(Kuf, tf.linalg.solve(Kuu, Kuf), transpose_a=True)
    np.testing.assert_allclose(Qff, kernel(X), atol=1e-12)


def test_sgpr_is_exact(build, X):
    kernel, Y = build(max_degree=3), np.sin(X[:, :1])
    harmonics = SphericalHarmonics.for_kernel(kernel, 3, 3)
    bound = gpflow.models.SGPR((X, Y), kernel, harmonics, noise_variance=0.1)
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.1)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        # Kuu's condition number costs some digits of a stock, dense SGPR.
        np.testing.assert_allclose(bound.elbo(), exact.log_marginal_likelihood(), rtol=1e-7)


def test_shares_of_the_variance(build):
    kernel = build()
    shares = kernel.variance_shares(4, 6).numpy()
    for degree in range(7):
        if degree in kernel.nonzero_degrees(4, 6):
            eigenvalue = kernel.eigenvalues(4, [degree]).numpy()[0]
            assert shares[degree] == pytest.approx(num_harmonics(4, degree) * eigenvalue)
        else:
            assert shares[degree] == 0.0
    assert 0.2 < shares.sum() < 1.0 + 1e-12
    np.testing.assert_allclose(
        build(max_degree=2).variance_shares(4, 6), shares * (np.arange(7) < 3)
    )


def test_a_degree_above_the_end_is_refused(X):
    kernel = ArcCosine(max_degree=2)
    with pytest.raises(
        ValueError, match=r"nonzero eigenvalues under ArcCosine in .* found zero for \[4\]"
    ):
        gpflow.covariances.Kuf(SphericalHarmonics(4, [0, 1, 2, 4]), kernel, X)


@pytest.mark.parametrize("max_degree", [-1, 1.5])
def test_bad_degree(build, max_degree):
    with pytest.raises(ValueError, match="max_degree must be an integer of 0 or more, found"):
        build(max_degree=max_degree)


@pytest.mark.full
@pytest.mark.parametrize("whiten", [True, False])
def test_eigenvalue_that_underflows(whiten, X):
    """It is refused where it is seen, and in a compiled step drops its features without a NaN."""
    kernel = SphericalSquaredExponential(lengthscale=6.0)
    with pytest.raises(
        ValueError, match=r"degrees must have positive eigenvalues, found .* for \[.*12\]"
    ):
        SphericalHarmonics.for_kernel(kernel, 3, 12)
    harmonics = SphericalHarmonics(4, range(13))
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(), harmonics, whiten=whiten, q_diag=True
    )

    @tf.function(autograph=False)
    def step():
        with tf.GradientTape() as tape:
            bound = model.elbo((X, X[:, :1]))
        return bound, tape.gradient(bound, model.trainable_variables)

    bound, gradients = step()
    assert np.isfinite(bound)
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)
