"""With more harmonics the approximation improves, and in the limit it is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.optimizers import NaturalGradient

from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)

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
    """SGPR adds jitter to Kuu, which is diagonal and needs none, and loses a little by it. What is
    evaluated once need not be traced."""
    tf.config.run_functions_eagerly(True)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
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
    for _ in range(8):
        optimizer.minimize(loss, [(model.q_mu, model.q_sqrt)])
