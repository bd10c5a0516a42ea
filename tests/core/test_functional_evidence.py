"""Evidence and predictions of GPR against kernels that are integrated by hand."""

import gpflow
import numpy as np
import pytest
from scipy.special import erf

from interdomain.functionals import Mean, Value
from interdomain.kernels import Functional

LENGTHSCALE, VARIANCE, NOISE = 0.7, 1.3, 0.05


def normal_integral(d: np.ndarray) -> np.ndarray:
    """A second antiderivative of the squared exponential."""
    u = d / LENGTHSCALE
    return LENGTHSCALE**2 * (np.sqrt(np.pi / 2) * u * erf(u / np.sqrt(2)) + np.exp(-(u**2) / 2))


def exponential_integral(d: np.ndarray) -> np.ndarray:
    """A second antiderivative of the Matern-1/2 kernel."""
    u = np.abs(d) / LENGTHSCALE
    return LENGTHSCALE**2 * (u + np.exp(-u))


@pytest.mark.parametrize(
    ("kind", "integral"),
    [
        (gpflow.kernels.SquaredExponential, normal_integral),
        (gpflow.kernels.Matern12, exponential_integral),
    ],
)
@pytest.mark.parametrize("has_columns", [False, True], ids=["one width", "a width for each row"])
def test_evidence(kind: type, integral: object, has_columns: bool) -> None:
    """Means over intervals: the second difference of an antiderivative."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, size=60))
    widths = rng.uniform(0.2, 2, size=60) if has_columns else np.full(60, 0.8)
    Y = np.sin(x)[:, None] + 0.2 * rng.normal(size=(60, 1))
    plus, minus = (np.add.outer(widths, sign * widths) / 2 for sign in (1, -1))
    lags = np.subtract.outer(x, x)
    values = integral(lags + plus) - integral(lags + minus)
    values += integral(lags - plus) - integral(lags - minus)
    K = VARIANCE * values / np.outer(widths, widths) + NOISE * np.eye(60)
    wanted = -0.5 * (Y.T @ np.linalg.solve(K, Y)).item()
    wanted -= 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]

    mean = Mean(width_columns=[1]) if has_columns else Mean([0.8])
    X = np.column_stack([x, widths]) if has_columns else x[:, None]
    kernel = Functional(kind(VARIANCE, LENGTHSCALE), mean)
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=NOISE)
    np.testing.assert_allclose(model.log_marginal_likelihood(), wanted, rtol=1e-8)

    both = Functional(kernel.prior, [mean, Value()])
    model = gpflow.models.GPR((np.insert(X, X.shape[1], 0.0, axis=1), Y), both)
    model.likelihood.variance.assign(NOISE)
    at = np.zeros([5, X.shape[1] + 1])
    at[:, 0], at[:, -1] = np.linspace(1, 9, 5), 1.0
    step = 1e-4  # the slope of the antiderivative, by differences
    lags = np.subtract.outer(at[:, 0], x)
    ends = [
        (integral(lags + half + step) - integral(lags + half - step)) / (2 * step)
        for half in (widths / 2, -widths / 2)
    ]
    cross = VARIANCE * (ends[0] - ends[1]) / widths
    actual = model.predict_f(at)[0]
    np.testing.assert_allclose(actual, cross @ np.linalg.solve(K, Y), atol=1e-5)
