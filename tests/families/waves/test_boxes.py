"""Fourier features of a box: against exact regression, their covariances, and rows beyond."""

import itertools
import warnings

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential

from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import FiniteRank, Periodized
from interdomain.models import StructuredSGPR
from tests.conformance.helpers import assert_close, value_and_gradients
from tests.families.waves.references import LOWER, PERIODS, UPPER

NOISE = 0.05
Data = tuple[np.ndarray, np.ndarray]


pytestmark = pytest.mark.usefixtures("no_jitter")  # SGPR adds it to Kuu, which needs none


def data(num_columns: int, count: int = 30) -> Data:
    rng = np.random.default_rng(num_columns)
    X = rng.uniform(size=(count, num_columns))
    Y = np.sin(4 * X @ np.linspace(1, 0.3, num_columns))[:, None]
    return X, Y + 0.2 * rng.normal(size=(count, 1))


def base(num_columns: int, kind: type = Matern32) -> gpflow.kernels.Kernel:
    return kind(variance=1.2, lengthscales=np.linspace(0.4, 0.9, num_columns))


def exact(rows: Data, kernel: gpflow.kernels.Kernel) -> gpflow.models.GPR:
    return gpflow.models.GPR(rows, kernel, noise_variance=NOISE)


@pytest.mark.parametrize("num_columns", [1, 3])
def test_bounds_reach_exact_regression(num_columns: int) -> None:
    """From below, of all models with the same features, and never falling as they are added; no
    further from it than the variance t that they leave out allows: ``t / (2 noise) (1 + |y|^2 /
    (noise + t))`` (Burt et al. 2019, lemma 3)."""
    rows = data(num_columns)
    kernel = Periodized.from_data(base(num_columns, Matern52), rows[0], margin=3.0)
    gpr, gaps = exact(rows, kernel), [np.inf]
    evidence = float(gpr.log_marginal_likelihood())
    for count in (5, 40, 300):
        features = BoxFourierFeatures.for_kernel(kernel, count)
        bound = float(gpflow.models.SGPR(rows, kernel, features, noise_variance=NOISE).elbo())
        explained = kernel.explained_variance(features.frequencies)
        left = len(rows[0]) * float(kernel.total_variance() - explained)
        allowed = left / (2 * NOISE) * (1 + np.sum(rows[1] ** 2) / (NOISE + left))
        gaps.append(evidence - bound)
        assert -1e-9 <= gaps[-1] <= min(allowed, gaps[-2]) + 1e-9
    assert gaps[-1] < gaps[1] / 2
    model = StructuredSGPR(rows, kernel, features, noise_variance=NOISE, charge="trace")
    np.testing.assert_allclose(model.elbo(), bound, rtol=1e-9)
    if num_columns == 1:
        assert gaps[-1] < 1e-6
        Xnew = data(1, 7)[0]
        assert_close(model.predict_f(Xnew), gpr.predict_f(Xnew), atol=1e-5)


@pytest.mark.parametrize("num_columns", [1, 2])
def test_towards_the_kernel_itself_as_the_box_grows(num_columns: int) -> None:
    rows, plain = data(num_columns), base(num_columns)
    kernels = [Periodized.from_data(plain, rows[0], margin=m) for m in (1.0, 3.0, 9.0, 16.0)]
    evidence, *others = (exact(rows, k).log_marginal_likelihood() for k in (plain, *kernels))
    gaps = [abs(float(other - evidence)) for other in others]
    assert np.all(np.diff(gaps) < 0)
    # exp(-sqrt(3) 16) of images, times some rows whose weights are up to 1 / NOISE.
    assert gaps[0] > 0.05 and gaps[-1] < 1e-8


# Covariances: waves, the RKHS's inner products, Mercer's sum.


def box(num_columns: int) -> Periodized:
    kind = {1: Matern12, 2: Matern32, 3: Matern52}[num_columns]
    base = kind(variance=1.3, lengthscales=np.array([0.3, 0.5, 0.2])[:num_columns])
    return Periodized(base, LOWER[:num_columns], UPPER[:num_columns])


def features(kernel: Periodized, count: int = 30) -> BoxFourierFeatures:
    return BoxFourierFeatures.for_kernel(kernel, count)


def inputs(num_columns: int, count: int = 9, seed: int = 0) -> np.ndarray:
    """In the box, at its corners, and outside."""
    rng = np.random.default_rng(seed)
    corners = np.array([LOWER, UPPER])[:, :num_columns]
    turns = rng.uniform(-0.7, 1.7, [count, num_columns])
    return np.concatenate([corners, corners[0] + turns * PERIODS[:num_columns]])


def grid(num_columns: int, counts: list[int]) -> np.ndarray:
    """Points of the rectangle rule, which is exact for waves of fewer periods than half of them."""
    axes = [
        LOWER[i] + PERIODS[i] * (np.arange(count) + 0.3) / count for i, count in enumerate(counts)
    ]
    return np.array(list(itertools.product(*axes))).reshape(-1, num_columns)


def wave(number: int, turns: np.ndarray) -> np.ndarray:
    """The orthonormal functions of a period of one, by their numbers."""
    if not number:
        return np.ones_like(turns)
    function = np.cos if number % 2 else np.sin
    return np.sqrt(2) * function(2 * np.pi * ((number + 1) // 2) * turns)


@pytest.mark.parametrize("D", [1, 3])
def test_kuf_is_waves(D: int) -> None:
    """Products of the waves of each column, in the order of `functions`, beyond the box too."""
    kernel, X = box(D), inputs(D)
    iv = features(kernel)
    turns = (X - LOWER[:D]) / PERIODS[:D]
    for row, numbers in zip(Kuf(iv, kernel, X).numpy(), iv.functions, strict=True):
        columns = [
            wave(number, turns[:, i]) / np.sqrt(PERIODS[i]) for i, number in enumerate(numbers)
        ]
        np.testing.assert_allclose(row, np.prod(columns, axis=0), rtol=0, atol=1e-13)


# Points in each column, and how many aliases on either side carry more than 1e-6 together.
@pytest.mark.parametrize(("counts", "reach"), [([64], [4000]), ([24, 24], [12, 12])])
def test_waves_are_eigenfunctions(counts: list[int], reach: list[int]) -> None:
    """``int k(x, y) phi_m(y) dy = phi_m(x) / Kuu_mm`` over the box, so that ``<k(x, .), phi_m>`` is
    phi_m(x) in the RKHS, and ``<phi_m, phi_m>`` is Kuu_mm.

    By the rectangle rule: what it makes of a wave has the density of all waves that are the same on
    the grid, its aliases, in place of its own."""
    D = len(counts)
    kernel, points = box(D), grid(D, counts)
    iv = features(kernel, 15)
    X = points[[3, len(points) // 2, -5]]
    weight = np.prod(PERIODS[:D]) / np.prod(counts)
    smoothed = kernel(X, points).numpy() @ Kuf(iv, kernel, points).numpy().T * weight
    axes = [n * np.arange(-r, r + 1) for n, r in zip(counts, reach, strict=True)]
    aliases = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, D)
    waves, waves_of_X = (iv.functions + 1) // 2, Kuf(iv, kernel, X).numpy()
    densities = [np.sum(kernel.spectral_density(j + aliases)) for j in waves]
    assert_close(smoothed, waves_of_X.T * densities, rtol=1e-5)
    own = 1 / np.diag(Kuu(iv, kernel))
    shares = own / densities
    assert np.all(shares < 1 + 1e-12) and np.all(shares[:5] > 0.98)
    np.testing.assert_allclose(
        own, [kernel.spectral_density([j]).numpy()[0] for j in waves], rtol=1e-13
    )


@pytest.mark.parametrize("num_columns", [2, 3])
def test_mercer(num_columns: int) -> None:
    """``Kfu Kuu^-1 Kuf`` grows to K: never above in any direction, and no further from it than the
    variance that is left out."""
    kernel, X = box(num_columns), inputs(num_columns)
    covariance, total = kernel(X).numpy(), float(kernel.total_variance())
    before = np.zeros_like(covariance)
    for count in (1, 10, 100, 1000):
        iv = features(kernel, count)
        values = Kuf(iv, kernel, X).numpy()
        explained = values.T @ (values / np.diag(Kuu(iv, kernel))[:, None])
        for more, less in ((explained, before), (covariance, explained)):
            assert np.linalg.eigvalsh(more - less)[0] >= -1e-12
        left = total - float(kernel.explained_variance(iv.frequencies))
        np.testing.assert_allclose(np.diag(explained), total - left, rtol=1e-12)
        assert np.max(np.abs(covariance - explained)) <= left + 1e-12
        before = explained
    assert left < 0.2 * total


def test_high_frequencies_alone() -> None:
    """Frequencies between them cost nothing."""
    kernel = Periodized(Matern12(lengthscales=0.1), 0.0, 1.0)
    iv = BoxFourierFeatures(0.0, 1.0, [[0], [10**8]])
    X = np.array([[0.0], [2.5e-9], [0.5]])
    expected = [[1, 1, 1], np.sqrt(2) * np.array([1, 0, 1]), np.sqrt(2) * np.array([0, 1, 0])]
    # A turn is rounded to 1e-16, of which there are 1e8.
    np.testing.assert_allclose(Kuf(iv, kernel, X), expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_densities_that_underflow(dtype: type) -> None:
    """Features of no effect, whose Kuu is finite as are its gradients."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
        kernel = Periodized(SquaredExponential(lengthscales=1.0), 0.0, 1.0)
        iv = features(kernel, 61)
        inverse, gradients = value_and_gradients(
            lambda: 1 / tf.linalg.diag_part(Kuu(iv, kernel)), kernel.trainable_variables
        )
        for value in (1 / inverse, tf.sqrt(1 / inverse), *gradients):
            assert np.all(np.isfinite(value))
        np.testing.assert_allclose(tf.reduce_sum(inverse), kernel.total_variance(), rtol=1e-6)


# Predictions beyond the box of Fourier features warn; training there is refused.

ROWS = np.random.default_rng(0).uniform(size=[60, 3])
TARGETS = np.sin(5 * ROWS[:, :1]) * ROWS[:, 2:]


def test_predictions_warn() -> None:
    """Predictions warn of rows outside of the box, for a kernel on columns 2 and 0."""
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
