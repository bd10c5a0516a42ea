"""With more harmonics the approximation improves, and in the limit it is exact."""

from collections.abc import Callable, Iterator

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.optimizers import NaturalGradient

from interdomain.inducing_variables import HarmonicInducingPoints, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    HarmonicKernel,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)
from interdomain.transforms import CyclicTransform, Negation, Rotation

NOISE = 0.1
DEGREES = (2, 10, 40, 160)
Data = tuple[np.ndarray, np.ndarray]

# Kernel, and how far below the exact log marginal likelihood the bound may end: set by the tail
# above degree 160.
REGRESSIONS: dict[str, tuple[Callable[[], ZonalKernel], float]] = {
    "squared-exponential": (lambda: SphericalSquaredExponential(lengthscale=0.2), 1e-9),
    "matern52": (lambda: SphericalMatern52(lengthscale=0.3), 1e-3),
    "arc-cosine-1": (lambda: ArcCosine(1), 1e-3),
}


@pytest.fixture(autouse=True)
def without_jitter_or_tracing() -> Iterator[None]:
    """SGPR adds jitter to Kuu also where it is diagonal and needs none, and loses a little by it.
    What is evaluated once need not be traced; checks of shapes would take most of the time."""
    tf.config.run_functions_eagerly(True)
    with disable_check_shapes(), gpflow.config.as_context(gpflow.config.Config(jitter=1e-14)):
        yield
    tf.config.run_functions_eagerly(False)


def wave() -> Data:
    """60 noisy points of a wave of two frequencies, in one dimension, with gaps."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 6, 60))[:, None]
    Y = np.sin(2 * X) + 0.5 * np.cos(5 * X) * np.exp(-X / 4) + 0.2 * rng.normal(size=X.shape)
    return (X - X.mean()) / X.std(), (Y - Y.mean()) / Y.std()


def two_moons() -> Data:
    """40 points of two interlocked half moons, in two dimensions."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, np.pi, 40)
    label = np.arange(40) % 2
    sign = 1.0 - 2.0 * label
    X = np.stack([sign * np.cos(angle) + 0.5 * sign, sign * np.sin(angle) - 0.3 * sign], axis=1)
    X += 0.2 * rng.normal(size=X.shape)
    return (X - X.mean(axis=0)) / X.std(axis=0), label[:, None].astype(float)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_sgpr_reaches_exact_regression(name: str) -> None:
    build, tolerance = REGRESSIONS[name]
    data, kernel = wave(), build()
    exact = gpflow.models.GPR(data, kernel, noise_variance=NOISE)
    likelihood = exact.log_marginal_likelihood().numpy()
    models = [
        gpflow.models.SGPR(
            data,
            kernel,
            SphericalHarmonics.for_kernel(kernel, input_dim=1, max_degree=degree),
            noise_variance=NOISE,
        )
        for degree in DEGREES
    ]
    gaps = likelihood - np.array([model.elbo().numpy() for model in models])
    assert gaps[0] > 10, "so few harmonics should not be enough"
    assert np.all(np.diff(gaps) < 1e-9), "the bound falls as harmonics are added"
    assert -1e-9 < gaps[-1] < tolerance
    X = np.linspace(-2, 2, 25)[:, None]
    for part, exact_part in zip(models[-1].predict_f(X), exact.predict_f(X), strict=True):
        np.testing.assert_allclose(part, exact_part, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "order"),
    [(SphericalMatern12(lengthscale=0.3), 1.0), (SphericalMatern32(lengthscale=0.3), 3.0)],
    ids=["matern12", "matern32"],
)
def test_gap_falls_like_the_tail(kernel: ZonalKernel, order: float) -> None:
    """In one dimension the bound closes like the variance above degree L, as ``L^(-2 nu)``."""
    data = wave()
    likelihood = gpflow.models.GPR(data, kernel, noise_variance=NOISE).log_marginal_likelihood()
    gaps = []
    for degree in (80, 160):
        harmonics = SphericalHarmonics.for_kernel(kernel, input_dim=1, max_degree=degree)
        model = gpflow.models.SGPR(data, kernel, harmonics, noise_variance=NOISE)
        gaps.append(float(likelihood - model.elbo()))
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(order, abs=0.5)


def test_classification_reaches_full_variational_inference() -> None:
    """At the optimal q(u) the ELBO grows with the degree, up to that of a VGP."""
    data, kernel = two_moons(), SphericalSquaredExponential(lengthscale=0.4)
    likelihood = gpflow.likelihoods.Bernoulli()
    full = gpflow.models.VGP(data, kernel, likelihood)
    optimise_q(full, full.training_loss_closure(compile=False))
    best = full.elbo().numpy()

    bounds = []
    for degree in (1, 3, 8):
        harmonics = SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=degree)
        model = gpflow.models.SVGP(kernel, likelihood, harmonics)
        optimise_q(model, model.training_loss_closure(data, compile=False))
        bounds.append(model.elbo(data).numpy())
    assert np.all(np.diff(bounds) > 1e-6), bounds
    assert bounds[0] < best - 1
    assert best - 0.1 < bounds[-1] < best + 1e-6
    accuracy = np.mean((model.predict_y(data[0])[0].numpy() > 0.5) == data[1])
    assert accuracy > 0.85


def optimise_q(model: gpflow.models.GPModel, loss: Callable) -> None:
    """By natural gradients of full length, which are Newton steps here."""
    optimizer = NaturalGradient(gamma=1.0)
    for _ in range(6):
        optimizer.minimize(loss, [(model.q_mu, model.q_sqrt)])


# Theorems 4.1 and 4.2 of Sun et al. 2021, through stock GPflow models.

GROUPS: dict[str, list[CyclicTransform]] = {
    "2": [Rotation(2)],
    "3": [Rotation(3)],
    "4": [Rotation(4)],
    "2x3": [Negation(2), Rotation(3)],
}
# Away from the fixed points, and from each other's images.
Z = np.array([[0.9, 0.3, 0.5], [-1.9, 0.8, -0.7], [0.2, 2.8, 1.1]])


def make_data(num: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(num, 3))
    return X, np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:] + 0.3 * rng.normal(size=(num, 1))


def orbit_of(kernel: HarmonicKernel) -> InducingPoints:
    return InducingPoints(tf.reshape(kernel.transform.orbit(Z), [-1, 3]).numpy())


@pytest.mark.parametrize("group", GROUPS)
def test_joint_q_is_that_of_the_orbits(group: str) -> None:
    """Theorem 4.1, completed for the pairs of section 3.4: with the best q(u) of each."""
    kernel = HarmonicKernel(gpflow.kernels.Matern32(1.3, 1.1), GROUPS[group])
    points = HarmonicInducingPoints.for_kernel(kernel, Z, complete=True)
    orbit = orbit_of(kernel)
    assert points.num_inducing == orbit.num_inducing == 3 * kernel.transform.order
    data, X = make_data(40), np.random.default_rng(4).normal(size=(6, 3))
    harmonic = gpflow.models.SGPR(data, kernel, points, noise_variance=NOISE)
    stock = gpflow.models.SGPR(data, kernel.base_kernel, orbit, noise_variance=NOISE)
    np.testing.assert_allclose(harmonic.elbo(), stock.elbo(), rtol=1e-8)
    for actual, desired in zip(
        harmonic.predict_f(X, full_cov=True), stock.predict_f(X, full_cov=True), strict=True
    ):
        np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-8)
    # There is something to compare: the points explain a part of the prior, and predict.
    trace = float(tf.reduce_sum(kernel(data[0], full_cov=False)))
    assert 0.2 < explained(kernel, points, data[0]) / trace < 0.9
    assert np.abs(stock.predict_f(X)[0]).max() > 0.3


def explained(kernel: gpflow.kernels.Kernel, points: object, X: np.ndarray) -> float:
    features = Kuf(points, kernel, X).numpy()
    return float(np.sum(features * np.linalg.solve(Kuu(points, kernel).numpy(), features)))


def largest_correlation(X: np.ndarray) -> float:
    """The largest correlation of two variables in different blocks, under the best joint q(u)."""
    kernel = HarmonicKernel(gpflow.kernels.SquaredExponential(1.0, 0.8), Negation(0))
    points = HarmonicInducingPoints([[[0.4], [1.1]], [[0.6], [1.4]]])
    model = gpflow.models.SGPR((X, np.sin(X)), kernel, points, noise_variance=0.5)
    _, covariance = model.compute_qu()
    deviations = np.sqrt(np.diag(covariance))
    return float(np.abs(covariance / np.outer(deviations, deviations))[:2, 2:].max())


def test_blocks_become_independent_on_symmetric_data() -> None:
    """Theorem 4.2: x and G x are equally likely, and the correlation falls with N as a mean over
    the data does, N^(-1/2); elsewhere a mean-field q(u) stays wrong."""
    rng = np.random.default_rng(0)
    symmetric = [
        np.mean([largest_correlation(rng.normal(size=(num, 1))) for _ in range(3)])
        for num in (100, 1000, 10_000)
    ]
    assert symmetric[0] > 2 * symmetric[1] > 4 * symmetric[2]
    assert symmetric[2] < 0.05
    for num in (100, 10_000):
        assert largest_correlation(rng.uniform(0.2, 2.0, size=(num, 1))) > 0.8
