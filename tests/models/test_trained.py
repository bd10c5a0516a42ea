"""Warnings after training: features that end, boxes and frequencies that were outgrown."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np
import pytest

from interdomain.inducing_variables import PeriodicFourierFeatures, SphericalHarmonics
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import StructuredSGPR
from interdomain.models.trained import left_variance, warn_of_fit
from interdomain.training import fit

X = np.linspace(0, 10, 80)[:, None]
Y = np.sin(3 * X) + 0.1 * np.cos(17 * X)


def model(
    *, lengthscale: float = 1.0, num_inducing: int = 41, finite_rank: bool = True
) -> StructuredSGPR:
    base = gpflow.kernels.Matern32(lengthscales=lengthscale)
    kernel = Periodized.from_data(base, X)
    features = PeriodicFourierFeatures.for_kernel(kernel, num_inducing)
    prior = FiniteRank(kernel, features) if finite_rank else kernel
    return StructuredSGPR((X, Y), prior, features, noise_variance=0.01)


def found(of: StructuredSGPR) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_fit(of, None)
    return [str(warning.message) for warning in caught]


def test_margin_outgrown() -> None:
    trained = model()
    assert found(trained) == []
    assert trained.kernel.kernel.margin == pytest.approx([4.0])
    trained.kernel.kernel.base_kernel.lengthscales.assign(3.0)
    (message,) = found(trained)
    assert message.startswith("kernel: the lengthscale of column 0, 3, has outgrown the margin")
    # One that no longer varies over the box has no ends that could see each other.
    trained.kernel.kernel.base_kernel.lengthscales.assign(100.0)
    assert found(trained) == []


def test_frequencies_outgrown() -> None:
    trained = model()
    trained.kernel.kernel.base_kernel.lengthscales.assign(0.1)
    (message,) = found(trained)
    whole = trained.kernel.kernel.total_variance()
    share = 1 - trained.kernel(X[:1], full_cov=False)[0] / whole
    assert 0.25 < share < 1
    assert f"{share.numpy():.0%} of the variance of the base kernel" in message


def test_whole_kernels_are_charged_for() -> None:
    trained = model(num_inducing=11, finite_rank=False)
    (message,) = found(trained)
    assert "the features end at [5] periods" in message
    kernel, features = trained.kernel, trained.inducing_variable
    left = kernel.total_variance() - kernel.explained_variance(features.frequencies)
    assert f"the bound pays {float(left) / 0.02:.2g} a row" in message
    trained.likelihood.variance.assign(100.0)
    assert found(trained) == []


def test_fit_warns() -> None:
    trained = model(num_inducing=11, finite_rank=False)
    with pytest.warns(UserWarning, match="the features end at"):
        fit(trained, steps=1, progress=False)


def test_what_chosen_harmonics_leave_depends_on_the_rows() -> None:
    """Not on the share of their degrees in the sphere."""
    kernel = SphericalMatern52(weight_variances=[2.0, 0.01], active_dims=[1, 0])
    rows = np.random.default_rng(0).normal(size=[30, 2])
    chosen = SphericalHarmonics.for_data(kernel, rows, 12)
    left = left_variance(chosen, kernel, rows)
    expected = kernel(rows, full_cov=False) - FiniteRank(kernel, chosen)(rows, full_cov=False)
    assert left.variance == pytest.approx(np.mean(expected))
    assert "12 chosen harmonics" in left.end
    assert left_variance(chosen, kernel, None) is None
    # Whole degrees leave the same wherever the rows are, also where they are named one by one.
    whole = SphericalHarmonics.for_kernel(kernel, 2, 2)
    one_by_one = SphericalHarmonics(3, chains=whole.chains)
    same = left_variance(whole, kernel, rows).variance
    assert left_variance(one_by_one, kernel, rows).variance == pytest.approx(same)
