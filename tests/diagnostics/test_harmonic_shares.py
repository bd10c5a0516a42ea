"""What a set of harmonics explains, and in which columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpflow.covariances import Kuf
from gpflow.kernels import RBF

from interdomain.covariances import Kuu_operator
from interdomain.diagnostics import harmonic_shares
from interdomain.diagnostics.harmonics import HarmonicShares
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import ArcCosine, SphericalMatern52

X = np.random.default_rng(0).normal(size=(1_200, 5))
CHAINS = [[0, 0, 0], [2, 2, 3], [-2, 2, 3], [0, 3, 3], [1, 1, 1], [0, 0, 2]]
HARMONICS = SphericalHarmonics(4, chains=CHAINS, column_order=[2, 0, 1])
KERNEL = SphericalMatern52(variance=3.0, weight_variances=[0.5, 2.0, 0.2], active_dims=[3, 0, 4])


def report(**arguments: Any) -> HarmonicShares:
    return harmonic_shares(HARMONICS, KERNEL, X, **arguments)


def test_shares() -> None:
    found = report()
    features = Kuf(HARMONICS, KERNEL, X).numpy()
    scale = Kuu_operator(HARMONICS, KERNEL).diag_part().numpy()
    of_each = np.sum(features**2, axis=1) / scale / np.sum(KERNEL(X, full_cov=False))
    np.testing.assert_allclose(found.shares, of_each, rtol=1e-10)
    np.testing.assert_array_equal(found.degrees, [0, 3, 3, 3, 1, 2])
    # The kernel sees columns 3, 0 and 4, and the harmonics those in the order 4, 3, 0.
    assert found.coordinates == ("4, 3", "0", "bias")
    expected = [[0, 0, 0], [2, 0, 1], [2, 0, 1], [0, 3, 0], [1, 0, 0], [0, 0, 2]]
    np.testing.assert_array_equal(found.raises, expected)


def test_text() -> None:
    lines = str(report(column_names=["age", "b", "c", "height", "e"])).splitlines()
    share = f"{np.sum(report().shares):.1%}"
    assert lines[0] == f"6 harmonics explain {share} of the prior variance over 1,200 rows"
    table = lines[lines.index("") + 7 :]
    assert table[1].split()[:4] == ["e,", "height", "3", "2"] and len(table) == 4
    without = SphericalHarmonics(4, chains=[[0, 0, 0], [0, 0, 1]])
    assert str(harmonic_shares(without, KERNEL, X)).endswith("none in: 3, 0, 4")


def test_errors() -> None:
    names = "column_names must be"
    for arguments, message in [
        ({"kernel": RBF()}, "SphericalHarmonics.*SquaredExponential"),
        ({"kernel": ArcCosine(active_dims=[0, 1, 2])}, r"found zero for \[3\]"),
        ({"column_names": ["a", "b"]}, f"{names} 5 names, one for each column .*found 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            harmonic_shares(**{"harmonics": HARMONICS, "kernel": KERNEL, "X": X} | arguments)


def test_of_a_posterior_mean() -> None:
    kernel = SphericalMatern52(weight_variances=[0.3, 1.0])
    X = np.random.default_rng(2).normal(size=(200, 2))
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    prior = harmonic_shares(harmonics, kernel, X)
    mean = np.zeros((harmonics.num_inducing, 2))
    mean[0], mean[2], mean[5] = 7.0, [3.0, 4.0], 2.0
    found = harmonic_shares(harmonics, kernel, X, whitened_mean=mean)
    alone = [
        harmonic_shares(harmonics, kernel, X, whitened_mean=row).shares
        for row in np.eye(harmonics.num_inducing)
    ]
    np.testing.assert_allclose(alone, np.diag([0] + 8 * [1]), atol=1e-14)  # none of the constant
    np.testing.assert_allclose(np.sum(found.shares), 1, rtol=1e-14)
    np.testing.assert_array_equal(np.flatnonzero(found.shares), [2, 5])
    assert "posterior mean" in str(found) and "prior variance" in str(prior)
    with pytest.raises(ValueError, match="whitened_mean must have 9 rows"):
        harmonic_shares(harmonics, kernel, X, whitened_mean=mean[:5])
