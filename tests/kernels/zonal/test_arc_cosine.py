from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest

from interdomain.kernels import ArcCosine
from tests.kernels.cases import inputs


@pytest.mark.parametrize("order, factor", [(0, 1), (1, 1), (2, 3)])
@pytest.mark.parametrize("weights", [0.6, [0.5, 1.5, 1.0]])
def test_equals_gpflow_s(order: int, factor: int, weights: Any) -> None:
    settings = {"variance": 1.4, "weight_variances": weights, "bias_variance": 0.7}
    ours, theirs = ArcCosine(order, **settings), gpflow.kernels.ArcCosine(order, **settings)
    X, X2 = inputs(6, 3), inputs(4, 3, seed=1)
    np.testing.assert_allclose(factor * ours(X, X2), theirs(X, X2), rtol=1e-12)
    np.testing.assert_allclose(factor * ours(X), theirs(X), rtol=5e-8)  # theirs shifts by 1e-15
    np.testing.assert_allclose(
        factor * ours(X, full_cov=False), theirs(X, full_cov=False), rtol=1e-12
    )


@pytest.mark.parametrize("order", [0, 1, 2])
def test_is_the_covariance_of_a_wide_network(order: int) -> None:
    """Against 400,000 random units of one hidden layer."""
    kernel = ArcCosine(order, weight_variances=0.6, bias_variance=0.7)
    X = 0.5 * inputs(4, 2)
    rng = np.random.default_rng(1)
    units = rng.normal(size=(400_000, 3)) * np.sqrt([0.6, 0.6, 0.7])
    hidden = units @ np.append(X, np.ones((4, 1)), axis=1).T
    hidden = (hidden > 0) * np.abs(hidden) ** order
    scale = {0: 2, 1: 2, 2: 2 / 3}[order]
    estimate = scale * hidden.T @ hidden / len(units)
    np.testing.assert_allclose(kernel(X), estimate, rtol=0.05 if order == 2 else 0.02)


def test_two_layers_are_one_of_one() -> None:
    """The second layer sees the features of the first, whose covariance is the first kernel."""
    first, X = ArcCosine(1, bias_variance=0.4), inputs(5, 2)
    K = first(X).numpy()
    norms = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    angles = np.arccos(np.clip(K / norms, -1, 1))
    expected = norms * (np.sin(angles) + (np.pi - angles) * np.cos(angles)) / np.pi
    np.testing.assert_allclose(ArcCosine(1, 2, bias_variance=0.4)(X), expected, rtol=1e-7)


@pytest.mark.parametrize(
    "order, depth, power", [(0, 1, 0), (0, 3, 0), (1, 1, 1), (1, 4, 1), (2, 1, 2), (2, 2, 4)]
)
def test_radial_power_is_that_of_the_network(order: int, depth: int, power: int) -> None:
    kernel = ArcCosine(order, depth)
    assert kernel.radial_power == power
    X = np.array([[1e6, 2e6]])  # the bias is negligible: twice the input, 2^(2 power) times K
    np.testing.assert_allclose(kernel(2 * X) / kernel(X), 4.0**power, rtol=1e-9)
