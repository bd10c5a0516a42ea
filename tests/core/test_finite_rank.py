"""Kernels of finite rank: against plain sums, and in the models of GPflow and of this library."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Matern32, SharedIndependent

from interdomain.core.finite_rank import is_complete
from interdomain.covariances import Kuu_operator, Kvu
from interdomain.inducing_variables import (
    ActivationFeatures,
    BoxFourierFeatures,
    FixedPlaces,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import (
    ArcCosine,
    ChordalSquaredExponential,
    FiniteRank,
    HarmonicKernel,
    Periodized,
    SphericalMatern12,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.models import StructuredSGPR
from interdomain.transforms import Negation
from tests.conformance.helpers import (
    assert_close,
    assert_refused,
    assert_same_objective,
    compiled,
    step_graph,
)
from tests.posteriors.graph_ops import count_ops

RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(9, 3)), RNG.normal(size=(4, 3))
Y = np.sin(X[:, :1])
NOISE = 0.1

ZONAL: dict[str, Callable[[], ZonalKernel]] = {
    "arc-cosine": lambda: ArcCosine(order=2, variance=1.7),
    "chordal": lambda: ChordalSquaredExponential(radial_power=0.0),
}


def legendre_series(kernel: ZonalKernel, X: np.ndarray, max_degree: int) -> np.ndarray:
    """The kernel as a sum over degrees of Chebyshev polynomials of the second kind, to which
    Gegenbauer's come down in four dimensions: ``N(4, l) P_l(cos a) = (l + 1) sin((l + 1) a) / sin
    a``."""
    lifted = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    radius = np.linalg.norm(lifted, axis=1)
    angle = np.arccos(np.clip(lifted @ lifted.T / np.outer(radius, radius), -1, 1))
    np.fill_diagonal(angle, 0)
    total = np.zeros_like(angle)
    for degree in kernel.nonzero_degrees(4, max_degree):
        n = degree + 1
        with np.errstate(invalid="ignore"):
            level = np.where(angle > 0, n * np.sin(n * angle) / np.sin(angle), n * n)
        total += kernel.eigenvalues(4, [degree]).numpy()[0] * level
    return kernel.variance.numpy() * np.outer(radius, radius) ** kernel.radial_power * total


@pytest.mark.parametrize("name", ZONAL)
def test_harmonics_are_a_series_of_the_angle(name: str) -> None:
    base, max_degree = ZONAL[name](), 4
    kernel = FiniteRank(base, SphericalHarmonics.for_kernel(base, 3, max_degree))
    expected = legendre_series(base, X, max_degree)
    np.testing.assert_allclose(kernel(X), expected, atol=1e-12)
    np.testing.assert_allclose(kernel(X, X[:2]), expected[:, :2], atol=1e-12)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(expected), atol=1e-12)


def harmonics() -> tuple[Kernel, InducingVariables]:
    base = SphericalMatern12(lengthscale=0.4, weight_variances=[0.6, 1.7], active_dims=[2, 0])
    return base, SphericalHarmonics.for_kernel(base, 2, 4)


def box() -> tuple[Kernel, InducingVariables]:
    base = Matern32(variance=1.3, lengthscales=[0.7, 1.1])
    kernel = Periodized(base, [-4, -4], [4, 4], active_dims=[2, 0])
    return kernel, BoxFourierFeatures.for_kernel(kernel, 21)


def interval() -> tuple[Kernel, InducingVariables]:
    return Matern32(lengthscales=0.7, active_dims=[1]), VariationalFourierFeatures(-4, 4, 5)


def points() -> tuple[Kernel, InducingVariables]:
    return Matern32(lengthscales=0.7, active_dims=[0, 1]), InducingPoints(X[:5] + 0.1)


def units() -> tuple[Kernel, InducingVariables]:
    return ArcCosine(variance=0.7), ActivationFeatures.random(3, 6, "relu", 4, seed=0)


PAIRS = (harmonics, box, interval, points, units)
EACH = pytest.mark.parametrize("make", PAIRS, ids=lambda make: make.__name__)


def dense(base: Kernel, features: InducingVariables, *rows: Any) -> tf.Tensor:
    """``Kfu Kuu^{-1} Kuf``, with the jitter of what has to be factorised."""
    kuu = Kuu_operator(features, base, jitter=gpflow.config.default_jitter()).to_dense()
    first, second = (Kuf(features, base, x) for x in (rows * 2)[:2])
    return tf.matmul(first, tf.linalg.solve(kuu, second), transpose_a=True)


@EACH
def test_against_dense_matrices(make: Callable[[], tuple[Any, Any]]) -> None:
    """Values, of batches too, and gradients; positive semi-definite."""
    base, features = make()
    kernel = FiniteRank(base, features)
    assert_close(kernel(X), dense(base, features, X), rtol=1e-10)
    assert_close(kernel(X, X2), dense(base, features, X, X2), rtol=1e-10)
    assert_close(kernel(X, full_cov=False), np.diag(dense(base, features, X)), rtol=1e-10)
    assert np.linalg.eigvalsh(kernel(X)).min() > -1e-12
    weights, diagonal = RNG.normal(size=(9, 4)), RNG.normal(size=9)

    def by_kernel() -> tf.Tensor:
        cross = tf.reduce_sum(weights * kernel(X, X2))
        return cross + tf.reduce_sum(diagonal * kernel(X, full_cov=False))

    def by_matrices() -> tf.Tensor:
        own = tf.linalg.diag_part(dense(base, features, X))
        return tf.reduce_sum(weights * dense(base, features, X, X2)) + tf.reduce_sum(diagonal * own)

    variables = kernel.trainable_variables
    assert len(variables) == len({id(variable) for variable in variables})
    assert_same_objective(by_kernel, by_matrices, variables, rtol=1e-8)


@pytest.mark.parametrize("make", [box, points], ids=lambda make: make.__name__)
def test_the_bound_is_the_evidence(make: Callable[[], tuple[Any, Any]]) -> None:
    """Bounds of both collapsed models, with gradients and predictions, have no diagonal term."""
    base, features = make()
    kernel = FiniteRank(base, features)
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=NOISE)
    model = StructuredSGPR((X, Y), kernel, features, likelihood=exact.likelihood, progress=False)
    assert model.statistics.sums["diagonal"].shape == (0,)
    assert_same_objective(
        model.elbo, exact.log_marginal_likelihood, exact.trainable_variables, rtol=1e-8
    )
    assert_close(model.predict_f(X2, full_cov=True), exact.predict_f(X2, full_cov=True), rtol=1e-8)
    if make is box:
        with gpflow.config.as_context(gpflow.config.Config(jitter=1e-12)):
            stock = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=NOISE)
            np.testing.assert_allclose(stock.elbo(), exact.log_marginal_likelihood(), rtol=1e-8)


def test_sums() -> None:
    """Charged for what the points leave out, and for nothing of the others."""
    first, second, third = FiniteRank(*harmonics()), Matern32(0.4), FiniteRank(*box())
    kernel = gpflow.kernels.Sum([first, second, third, gpflow.kernels.White(0.2)])
    features = SumInducingVariables(
        [first.inducing_variable, InducingPoints(X[:4].copy()), third.inducing_variable, None]
    )
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-12)):
        stock = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=NOISE)
        model = StructuredSGPR(
            (X, Y), kernel, features, likelihood=stock.likelihood, charge="trace", progress=False
        )
        # The variance of the Matern, and that of the noise.
        assert model.statistics.sums["diagonal"].shape == (2,)
        assert_same_objective(model.elbo, stock.elbo, model.trainable_variables, rtol=1e-6)


SOME_OF: dict[str, tuple[Callable[[], tuple[Any, Any]], Callable[[], InducingVariables]]] = {
    "degrees": (harmonics, lambda: SphericalHarmonics(3, [0, 2, 3])),
    "frequencies": (box, lambda: BoxFourierFeatures([-4, -4], [4, 4], [[1, 0], [0, 0]])),
    "waves": (interval, lambda: VariationalFourierFeatures(-4, 4, 3)),
}


@pytest.mark.parametrize("name", SOME_OF)
def test_some_of_its_features(name: str) -> None:
    """They leave something out, and are charged for it."""
    make, some_of = SOME_OF[name]
    base, features = make()
    kernel, some = FiniteRank(base, features), some_of()
    assert is_complete(features, kernel) and is_complete(make()[1], kernel)
    assert not is_complete(some, kernel)
    assert_close(Kuu(some, kernel), Kuu(some, base), rtol=1e-15)
    assert_close(Kuf(some, kernel, X), Kuf(some, base, X), rtol=1e-15)
    if name == "degrees":
        assert_close(Kvu(some, features, kernel), Kvu(some, features, base), rtol=1e-15)
    left = kernel(X, full_cov=False) - np.diag(dense(base, some, X))
    assert np.all(left > 1e-3)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-13)):
        stock = gpflow.models.SGPR((X, Y), kernel, some, noise_variance=NOISE)
        model = StructuredSGPR((X, Y), kernel, some, noise_variance=NOISE, charge="trace")
        np.testing.assert_allclose(model.elbo(), stock.elbo(), rtol=1e-8)


def test_any_points() -> None:
    """Values of f there, whatever the kernel is made of."""
    kernel = FiniteRank(*harmonics())
    others = InducingPoints(X2)
    assert_close(Kuu(others, kernel, jitter=0.5), kernel(X2) + 0.5 * np.eye(4), rtol=1e-12)
    assert_close(Kuf(others, kernel, X), kernel(X2, X), rtol=1e-12)
    assert_close(Kvu(others, InducingPoints(X), kernel), kernel(X2, X), rtol=1e-12)


def test_nothing_is_factorised() -> None:
    for make, count in ((box, 0), (points, 1)):
        kernel = FiniteRank(*make())

        graph = compiled(lambda x, k=kernel: (k(x, x[:2])[:1], k(x, full_cov=False)), X.shape)
        # Once for the covariances of two sets of rows, and once for the diagonal.
        count_of_graph = count_ops(graph.get_concrete_function(), ("Cholesky",))
        assert count_of_graph == 2 * count, make.__name__


def test_errors() -> None:
    base, others = FiniteRank(*harmonics()), SphericalHarmonics(3, [0, 9])
    total, several = HarmonicKernel(Matern32(), Negation(0)), SharedIndependent(ArcCosine(), 2)
    own = (
        r"inducing_variable must be that of the FiniteRank kernel, or some of its features"
        r", found SphericalHarmonics with others than its SphericalHarmonics; pass kernel"
    )
    no_sum = "kernel must not be a sum .* found HarmonicKernel with ActivationFeatures"
    one_output = "kernel must have one output, found SharedIndependent; .*wrap the result instead"
    # With White in Kuu alone, K would lose its variance, and a part of the variance of Matern32.
    points, noisy = InducingPoints(X), Matern32() + gpflow.kernels.White(0.5)
    noise = "kernel must be the kernel of a function, found White noise; pass noise to the likeli"
    assert_refused(
        [
            (lambda: Kuf(others, base, X), own),
            (lambda: FiniteRank(total, units()[1]), no_sum),
            (lambda: FiniteRank(several, units()[1]), one_output),
            (lambda: FiniteRank(noisy, points), noise),
            (lambda: FiniteRank(noisy * Matern32(), FixedPlaces(X)), noise),
        ]
    )


@pytest.mark.parametrize("whiten", [True, False])
def test_eigenvalue_that_underflows(whiten: bool) -> None:
    """Its features are without effect, and without a NaN."""
    kernel = SphericalSquaredExponential(lengthscale=10.0)
    harmonics = SphericalHarmonics(4, [0, 1, 3])
    model = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(), harmonics, whiten=whiten, q_diag=True
    )
    for value in tf.nest.flatten(step_graph(model, (X, X[:, :1]))()):
        assert np.all(np.isfinite(value))
