"""Functions whose effects and Sobol indices are known: recovered within their error bars."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gpflow.kernels import Matern32, Matern52

from interdomain.kernels import FiniteRank
from interdomain.models import StructuredSGPR
from interdomain.tables import Additive, AdditiveFeatures, effects
from interdomain.tables.report import Effects

Array = np.ndarray[Any, np.dtype[Any]]

GRID = (np.arange(600) + 0.5) / 600
"""Midpoints: the mean over them is the integral, to 1e-6."""


@dataclass(frozen=True)
class Known:
    """A function of the unit cube, and its effects.

    :ivar truth: Each effect as a function of its own columns; all others are zero.
    """

    f: Callable[[Array], Array]
    num_columns: int
    effects: list[Any]
    truth: dict[tuple[int, ...], Callable[..., Array]]
    kind: type = Matern52
    num_rows: int = 1_000
    num_features: int = 250
    tolerance: float = 0.003

    @property
    def shares(self) -> dict[tuple[int, ...], float]:
        """By integration over a grid."""
        found = {}
        for effect, function in self.truth.items():
            values = function(*np.meshgrid(*[GRID] * len(effect), indexing="ij"))
            found[effect] = float(np.mean(values**2))
        total = sum(found.values())
        return {effect: value / total for effect, value in found.items()}


def ishigami() -> Known:
    def angle(u: Array) -> Array:
        return np.pi * (2 * u - 1)

    def f(U: Array) -> Array:
        x, y, z = angle(U).T
        return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)

    constant = np.pi**4 / 5
    truth = {
        (0,): lambda u: (1 + 0.1 * constant) * np.sin(angle(u)),
        (1,): lambda u: 7 * np.sin(angle(u)) ** 2 - 3.5,
        (0, 2): lambda u, v: 0.1 * np.sin(angle(u)) * (angle(v) ** 4 - constant),
    }
    return Known(f, 3, ["main", "pairs"], truth)


def sobol_g() -> Known:
    a = np.array([0.0, 1.0, 4.5, 9.0])

    def factor(u: Array, k: int) -> Array:
        return (np.abs(4 * u - 2) - 1) / (1 + a[k])

    def f(U: Array) -> Array:
        return np.prod([1 + factor(U[:, k], k) for k in range(4)], axis=0)

    truth: dict[tuple[int, ...], Any] = {(k,): lambda u, k=k: factor(u, k) for k in range(4)}
    pairs = [(j, k) for k in range(4) for j in range(k)]
    truth |= {(j, k): lambda u, v, j=j, k=k: factor(u, j) * factor(v, k) for j, k in pairs}
    # Effects of three columns have 0.07% of the variance, and are in the noise.
    return Known(f, 4, ["main", "pairs"], truth, Matern32, 2_000, 600, 0.005)


def friedman() -> Known:
    def product(u: Array, v: Array) -> Array:
        return 10 * np.sin(np.pi * u * v)

    main_effect = np.mean(product(GRID[:, None], GRID[None]), axis=1)
    mean = np.mean(main_effect)

    def main(u: Array) -> Array:
        return np.interp(u, GRID, main_effect) - mean

    def f(U: Array) -> Array:
        x = U.T
        return product(x[0], x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]

    truth = {
        (0,): main,
        (1,): main,
        (2,): lambda u: 20 * ((u - 0.5) ** 2 - 1 / 12),
        (3,): lambda u: 10 * (u - 0.5),
        (4,): lambda u: 5 * (u - 0.5),
        (0, 1): lambda u, v: product(u, v) - main(u) - main(v) - mean,
    }
    return Known(f, 10, ["main", (0, 1), (2, 3), (4, 5)], truth)


KNOWN = {known.__name__: known for known in (ishigami, sobol_g, friedman)}


@pytest.fixture(scope="module", params=KNOWN)
def fitted(request: pytest.FixtureRequest) -> tuple[Known, Effects]:
    known = KNOWN[request.param]()
    rng = np.random.default_rng(0)
    X = rng.uniform(size=[known.num_rows, known.num_columns])
    Y = (known.f(X) + 0.1 * rng.normal(size=len(X)))[:, None]
    # Training is not what is tested: these hyperparameters are good enough.
    kernel = Additive.from_data(X, known.effects, kernel_class=known.kind, lengthscales=0.3)
    features = AdditiveFeatures.for_kernel(kernel, known.num_features)
    prior, scale = FiniteRank(kernel, features), float(np.std(Y))
    data, noise = (X, Y / scale), (0.1 / scale) ** 2
    model = StructuredSGPR(data, prior, features, noise_variance=noise, progress=False)
    uniform = np.tile(GRID[:, None], known.num_columns)
    return known, effects(model, uniform, scale=scale)


def test_shares_are_recovered_within_their_error_bars(fitted: tuple[Known, Effects]) -> None:
    known, report = fitted
    expected = np.array([known.shares.get(effect, 0.0) for effect in report.effects])
    error = np.abs(report.shares - expected)
    assert np.all(error < 3 * report.share_deviations + known.tolerance), str(report)
    assert np.all(report.share_deviations < 0.01)
    largest = {report.effects[k] for k in report.order[: len(known.truth)]}
    visible = {effect for effect, share in known.shares.items() if share > 0.002}
    assert visible <= largest


def test_effects_are_inside_of_their_bands(fitted: tuple[Known, Effects]) -> None:
    known, report = fitted
    rng = np.random.default_rng(1)
    covered = []
    for effect, function in known.truth.items():
        places = rng.uniform(size=[400, len(effect)])
        truth = function(*places.T)
        mean, variance = report.of(effect, places)
        covered.append(np.mean(np.abs(mean - truth) < 1.96 * np.sqrt(variance)))
    assert np.mean(covered) > 0.85, dict(zip(known.truth, covered, strict=True))


def test_closed_forms() -> None:
    """Of the literature, for the functions above."""
    shares = ishigami().shares
    for effect, expected in {(0,): 0.3139, (1,): 0.4424, (0, 2): 0.2437}.items():
        np.testing.assert_allclose(shares[effect], expected, atol=1e-4)
    values = 1 / (3 * (1 + np.array([0.0, 1.0, 4.5, 9.0])) ** 2)
    g = sobol_g()
    np.testing.assert_allclose(g.shares[0, 1] / g.shares[(0,)], values[1], rtol=1e-4)
    np.testing.assert_allclose(g.shares[(2,)] / g.shares[(0,)], values[2] / values[0], rtol=1e-4)
