"""Regression with Fourier features of a box against exact regression."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern32, Matern52

from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import Periodized
from interdomain.models import StructuredSGPR
from tests.conformance.helpers import assert_close

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


def likelihood(rows: Data, kernel: gpflow.kernels.Kernel) -> float:
    exact = gpflow.models.GPR(rows, kernel, noise_variance=NOISE)
    return float(exact.log_marginal_likelihood())


@pytest.mark.parametrize("num_columns", [1, 3])
def test_bounds_reach_exact_regression(num_columns: int) -> None:
    """From below, of all models with the same features, and never falling as they are added; no
    further from it than the variance t that they leave out allows: ``t / (2 noise) (1 + |y|^2 /
    (noise + t))`` (Burt et al. 2019, lemma 3)."""
    rows = data(num_columns)
    kernel = Periodized.from_data(base(num_columns, Matern52), rows[0], margin=3.0)
    evidence, gaps = likelihood(rows, kernel), [np.inf]
    for count in (5, 40, 300):
        features = BoxFourierFeatures.for_kernel(kernel, count)
        bound = float(gpflow.models.SGPR(rows, kernel, features, noise_variance=NOISE).elbo())
        explained = kernel.explained_variance(features.frequencies)
        left = len(rows[0]) * float(kernel.total_variance() - explained)
        allowed = left / (2 * NOISE) * (1 + np.sum(rows[1] ** 2) / (NOISE + left))
        gaps.append(evidence - bound)
        assert -1e-9 <= gaps[-1] <= min(allowed, gaps[-2]) + 1e-9
    assert gaps[-1] < gaps[1] / 2
    model = StructuredSGPR(rows, kernel, features, noise_variance=NOISE, progress=False)
    np.testing.assert_allclose(model.elbo(), bound, rtol=1e-9)
    if num_columns == 1:
        assert gaps[-1] < 1e-6
        exact = gpflow.models.GPR(rows, kernel, noise_variance=NOISE)
        Xnew = data(1, 7)[0]
        assert_close(model.predict_f(Xnew), exact.predict_f(Xnew), atol=1e-5)


@pytest.mark.parametrize("num_columns", [1, 2])
def test_towards_the_kernel_itself_as_the_box_grows(num_columns: int) -> None:
    rows = data(num_columns)
    plain = base(num_columns)
    exact = likelihood(rows, plain)
    gaps = [
        abs(likelihood(rows, Periodized.from_data(plain, rows[0], margin=margin)) - exact)
        for margin in (1.0, 3.0, 9.0, 16.0)
    ]
    assert np.all(np.diff(gaps) < 0)
    # exp(-sqrt(3) 16) of images, times some rows whose weights are up to 1 / NOISE.
    assert gaps[0] > 0.05 and gaps[-1] < 1e-8
