"""Space and time in the limit of many splines: a Kalman smoother, and exact regression."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern32, Matern52

import interdomain as idm
from interdomain.models import StructuredSGPR
from tests.sums.test_space_time import NEW, RNG, X, Y, splines, stations, term, time

pytestmark = pytest.mark.usefixtures("no_jitter")

NOISE = 0.1


def smoothed(hours: Any, values: Any, new: Any, variance: float, lengthscale: float) -> Any:
    """The log evidence of a Matern-3/2 process with noise, and the moments of f at all hours.

    They follow from a Kalman filter and the smoother of Rauch, Tung and Striebel. The state is
    (f, f'). The values may be NaN. The time between hours is constant.
    """
    rate, step = np.sqrt(3) / lengthscale, hours[1] - hours[0]
    transition = np.exp(-rate * step) * np.array(
        [[1 + rate * step, step], [-(rate**2) * step, 1 - rate * step]]
    )
    stationary = variance * np.diag([1.0, rate**2])
    added = stationary - transition @ stationary @ transition.T
    mean, cov, log = np.zeros(2), stationary, 0.0
    filtered, predicted = [], []
    for number, value in enumerate(values):
        if number:
            mean, cov = transition @ mean, transition @ cov @ transition.T + added
        predicted.append((mean, cov))
        if np.isfinite(value):
            total, error = cov[0, 0] + NOISE, value - mean[0]
            log -= (np.log(2 * np.pi * total) + error**2 / total) / 2
            gain = cov[:, 0] / total
            mean, cov = mean + gain * error, cov - np.outer(gain, cov[0])
        filtered.append((mean, cov))
    means, covs = [filtered[-1][0]], [filtered[-1][1]]
    for (mean, cov), (ahead, ahead_cov) in zip(filtered[-2::-1], predicted[:0:-1], strict=True):
        gain = np.linalg.solve(ahead_cov, transition @ cov).T
        means.append(mean + gain @ (means[-1] - ahead))
        covs.append(cov + gain @ (covs[-1] - ahead_cov) @ gain.T)
    moments = [(mean[0], cov[0, 0]) for mean, cov in zip(means[::-1], covs[::-1], strict=True)]
    return log, *np.transpose(moments)


def test_kalman_smoother() -> None:
    """One place and many splines: the errors fall with the number of splines."""
    variance, lengthscale = 1.4, 6.0
    hours = np.arange(0.0, 100.0, 0.5)
    values = np.sin(hours / 4) + 0.3 * RNG.normal(size=len(hours))
    values[RNG.uniform(size=len(hours)) < 0.2] = np.nan
    values[80:100] = np.nan
    log, means, variances = smoothed(hours, values, hours, variance, lengthscale)
    rows = np.column_stack([np.zeros(len(hours)), hours])
    observed = np.isfinite(values)
    errors = []
    for count in (200, 400, 800, 1_600):
        place = Matern52(variance=1.0, active_dims=[0])
        process = Matern32(variance=variance, lengthscales=lengthscale, active_dims=[1])
        parts = idm.inducing_variables.FixedPlaces.from_data(rows, [0])
        time_features = idm.inducing_variables.SplineFeatures(-0.5, 100.5, count, 2)
        features = idm.inducing_variables.ProductInducingVariables([parts, time_features])
        data = rows[observed], values[observed, None]
        model = StructuredSGPR(
            data, place * process, features, noise_variance=NOISE, charge="trace"
        )
        mean, variance_of_f = (part[:, 0] for part in model.predict_f(rows))
        errors.append(
            [
                abs(float(model.elbo()) - log) / abs(log),
                np.max(np.abs(mean - means)) / np.max(np.abs(means)),
                np.max(np.abs(variance_of_f / variances - 1)),
            ]
        )
    assert np.all(np.array(errors[1:]) < np.array(errors[:-1]) / 3)
    assert np.max(errors[-1]) < 1e-3, errors
    exact = gpflow.models.GPR(data, process, noise_variance=NOISE)
    np.testing.assert_allclose(exact.log_marginal_likelihood(), log, rtol=1e-9)


def test_many_splines() -> None:
    """Several places: the exact GP."""
    kernel, _ = stations()
    product = kernel * time(Matern32, 2.0)
    exact = gpflow.models.GPR((X, Y), product, noise_variance=NOISE)
    evidence, moments = exact.log_marginal_likelihood(), exact.predict_f(NEW)
    errors = []
    for count in (60, 120, 240):
        _, features = term(stations(), time(), splines(2, count))
        model = StructuredSGPR((X, Y), product, features, noise_variance=NOISE, charge="trace")
        found = model.predict_f(NEW)
        differences = [np.max(np.abs(a - b)) for a, b in zip(found, moments, strict=True)]
        errors.append([abs(float(model.elbo() - evidence)) / abs(float(evidence)), *differences])
    assert np.all(np.array(errors[1:]) < np.array(errors[:-1]) / 3)
    assert np.max(errors[-1]) < 1e-3, errors
