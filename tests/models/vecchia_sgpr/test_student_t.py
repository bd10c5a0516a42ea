"""Formulas of Student-t noise against dense algebra, quadrature and SciPy's distributions."""

from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import tensorflow as tf

import interdomain as idm
from interdomain.models.vecchia_sgpr import student_t
from tests.models.vecchia_sgpr.dense_student_t import (
    DEGREES,
    NUM_ROWS,
    SCALE,
    Dense,
    Spread,
    local,
    rows,
)


@pytest.mark.parametrize("num_outputs", [1, 3])
def test_the_bound_of_the_mixture(num_outputs: int) -> None:
    """At the dense solution, the evidence of the Gaussian model and the terms of the weights are
    the bound. The steps of scale and degrees raise it, and end where its gradient is zero."""
    X, Y = rows(num_outputs)
    K, given = np.asarray(local()(X)), np.random.default_rng(0).uniform(0.5, 2, NUM_ROWS)
    dense = Dense(K, Y, given)
    s, df = SCALE**2, DEGREES
    np.testing.assert_allclose(
        student_t.expected_weights(dense.squares, s, df, num_outputs), dense.omega, rtol=1e-10
    )
    normal = scipy.stats.multivariate_normal(cov=K + np.diag(s / (given * dense.omega)))
    weight_bound = float(student_t.bound_of_weights(dense.omega, df, num_outputs))
    np.testing.assert_allclose(normal.logpdf(Y.T).sum() + weight_bound, dense.bound, rtol=1e-9)
    for variance, degrees in ((s, df), (0.3 * s, 20.0)):
        densities = scipy.stats.multivariate_t(
            shape=variance * np.eye(num_outputs), df=degrees
        ).logpdf(np.sqrt(dense.squares / num_outputs)[:, None] * np.ones(num_outputs))
        np.testing.assert_allclose(
            student_t.profile(dense.squares, variance, degrees, num_outputs), np.sum(densities)
        )
    least = {"least_variance": 1e-6, "least_degrees": 2.0}
    new = student_t.scale_and_degrees(dense.squares, s, df, num_outputs, **least)
    best = student_t.profile(dense.squares, *new, num_outputs)
    assert Dense(K, Y, given, *new).bound > dense.bound + 1e-3
    for factors in np.random.default_rng(1).uniform(0.9, 1.1, size=(50, 2)):
        near = np.maximum(new * factors, [0, 2])
        assert student_t.profile(dense.squares, *near, num_outputs) <= best + 1e-9
    assert new[1] < 10
    for fixed, which in (((s, df), 0), ((s, df), 1)):
        trained = (which != 0, which != 1)
        found = student_t.scale_and_degrees(
            dense.squares, *fixed, num_outputs, **least, trained=trained
        )
        np.testing.assert_allclose(found[which], fixed[which], rtol=1e-12)


def test_the_evidence_of_two_rows() -> None:
    """The bound is below the evidence, by quadrature over both weights, and near it; so are the
    means of f."""
    K = np.array([[0.8, 0.5], [0.5, 0.8]])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u = 12 * nodes - 8  # log lambda
    weights = 12 * weights * scipy.stats.gamma.pdf(np.exp(u), DEGREES / 2, scale=2 / DEGREES)
    weights *= np.exp(u)
    for Y, gap in (([[0.3], [0.1]], 0.2), ([[0.5], [-3.0]], 0.7)):
        noise = SCALE**2 * np.exp(-u)
        first, second = K[0, 0] + noise[:, None], K[1, 1] + noise[None]
        determinant = first * second - K[0, 1] ** 2
        (a,), (b,) = Y
        squares = (second * a**2 + first * b**2 - 2 * K[0, 1] * a * b) / determinant
        densities = np.exp(-squares / 2) / (2 * np.pi * np.sqrt(determinant))
        evidence = np.log(weights @ densities @ weights)
        means = K[0, 0] * (second * a - K[0, 1] * b) + K[0, 1] * (first * b - K[0, 1] * a)
        mean = weights @ (densities * means / determinant) @ weights / np.exp(evidence)
        dense = Dense(K, np.array(Y), np.ones(2))
        bound = dense.bound
        np.testing.assert_allclose(dense.mean[0], mean, atol=0.2)
        assert evidence - gap < bound < evidence, (Y, bound, evidence)


def test_densities() -> None:
    """Against SciPy's adaptive quadrature over f, where either of f and the noise is narrow."""
    cases = [
        (degrees, scale, variance, distance)
        for degrees in (2.05, 5.0, 400.0)
        for scale in (0.01, 1.0)
        for variance in (1e-3, 50.0)
        for distance in (0.0, 5.0, 300.0)
    ]
    for degrees, scale, variance, distance in cases:
        noise = scipy.stats.t(degrees, loc=distance, scale=scale)
        prior = scipy.stats.norm(scale=np.sqrt(variance))
        ends = [-40, *range(-5, 6), 40]
        edges = {distance + k * scale for k in ends} | {k * np.sqrt(variance) for k in ends}
        grid = np.concatenate([np.linspace(min(edges), max(edges), 4_001), list(edges)])
        most = np.max(noise.logpdf(grid) + prior.logpdf(grid))

        def joint(f: float, noise: Any = noise, prior: Any = prior, most: float = most) -> float:
            return float(np.exp(noise.logpdf(f) + prior.logpdf(f) - most))

        expected = np.log(piecewise(joint, edges)) + most
        parts = (np.array([[part]]) for part in (0.0, variance, distance))
        mean, variances, Y = parts
        found = student_t.log_density(mean, variances, scale, degrees, Y)
        np.testing.assert_allclose(found, [expected], rtol=1e-8, atol=1e-8)
    # Several outputs share the weight.
    rng = np.random.default_rng(0)
    mean, variance, Y = rng.normal(size=(1, 3)), rng.uniform(size=(1, 3)), rng.normal(size=(1, 3))

    def given(weight: float) -> float:
        deviations = np.sqrt(variance + SCALE**2 / weight)
        densities = scipy.stats.norm.pdf(Y, mean, deviations)
        return float(scipy.stats.gamma.pdf(weight, 1.75, scale=1 / 1.75) * np.prod(densities))

    expected = np.log(piecewise(given, {0, 0.01, 0.1, 0.5, 1, 2, 5, 40}))
    found = student_t.log_density(mean, variance, SCALE, DEGREES, Y)
    np.testing.assert_allclose(found, [expected], rtol=1e-9)
    parameters = [tf.constant(value, tf.float64) for value in (0.1, 0.4, 0.3, 3.5, 0.9)]

    def density(*parts: tf.Tensor) -> tf.Tensor:
        mean, variance, scale, degrees, Y = parts
        return student_t.log_density([[mean]], [[variance]], scale, degrees, [[Y]])[0]

    theirs, mine = tf.test.compute_gradient(density, parameters, delta=1e-5)
    np.testing.assert_allclose(np.ravel(mine), np.ravel(theirs), rtol=1e-6, atol=1e-8)


def piecewise(function: Any, edges: Any) -> float:
    """SciPy's integral, in pieces between the edges."""
    ends = sorted(edges)
    options = {"epsabs": 1e-15, "epsrel": 1e-11, "limit": 200}
    pieces = zip(ends[:-1], ends[1:], strict=True)
    return sum(scipy.integrate.quad(function, *piece, **options)[0] for piece in pieces)


class Sliced:
    """Rows that can only be sliced."""

    def __init__(self, rows: Any) -> None:
        self._rows, self.shape = rows, rows.shape

    def __getitem__(self, some: Any) -> Any:
        return self._rows[some]


def test_quantiles() -> None:
    X, Y = rows()
    kernel, new = local(), np.array([[0.1, 0.2], [8.0, 8.0]])
    student = gpflow.likelihoods.StudentT(scale=0.02, df=2.5)
    model = gpflow.models.VGP((X, Y), kernel, student)
    levels = np.array([1e-4, 0.05, 0.5, 0.7, 0.95])
    found = idm.predict_quantiles(model, new, levels, progress=False)
    mean, variance = (np.asarray(part) for part in model.predict_f(new))
    assert found.shape == (2, 1, 5)
    for row in range(2):
        for level, quantile in zip(levels, found[row, 0] - mean[row, 0], strict=True):

            def below(u: float, quantile: Any = quantile, row: int = row) -> float:
                weight = np.exp(u)
                deviation = np.sqrt(variance[row, 0] + 0.02**2 / weight)
                density = scipy.stats.gamma.pdf(weight, 1.25, scale=0.8) * weight
                return float(density * scipy.stats.norm.cdf(quantile / deviation))

            total = piecewise(below, {-50, -30, -20, -12, -8, -5, -3, -2, -1, 0, 1, 2, 4})
            np.testing.assert_allclose(total, level, rtol=1e-8)
    # Gaussian noise, of one variance and as a function of a column.
    for noise in (gpflow.likelihoods.Gaussian(0.3), gpflow.likelihoods.Gaussian(Spread())):
        exact = gpflow.models.GPR((X, Y), kernel, likelihood=noise)
        mean, variance = (np.asarray(part) for part in exact.predict_y(new))
        expected = scipy.stats.norm.ppf(levels, mean[:, :, None], np.sqrt(variance)[:, :, None])
        for given in (new, Sliced(new)):
            found = idm.predict_quantiles(exact, given, levels, progress=False)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    wrong: list[tuple[Any, Any, str]] = [
        (model, [0.0, 0.5], "levels must be probabilities above 0 and below 1"),
        (model, "all", "levels must be"),
        (gpflow.models.VGP((X, Y > 0), kernel, gpflow.likelihoods.Bernoulli()), 0.5, "Bernoulli"),
    ]
    for each, values, message in wrong:
        with pytest.raises(ValueError, match=message):
            idm.predict_quantiles(each, new, values)
