"""Splines as inducing variables: covariances by quadrature, what they leave, wrong arguments."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential
from scipy.integrate import fixed_quad
from scipy.interpolate import BSpline

from interdomain.inducing_variables import SplineFeatures
from interdomain.kernels import FiniteRank
from interdomain.models import StructuredSGPR
from tests.conformance.helpers import assert_refused, assert_slopes

LOWER, UPPER = -0.7, 1.9


def splines(num: int, degree: int) -> list[BSpline]:
    """SciPy's, with the knots of the box and beyond."""
    step = (UPPER - LOWER) / (num - degree)
    knots = LOWER + step * np.arange(-degree, num + 1)
    return [BSpline.basis_element(knots[m : m + degree + 2], extrapolate=False) for m in range(num)]


def inner_product(g: BSpline, h: BSpline, kernel: Any, cells: int) -> float:
    """MATH.md's inner products of the RKHS, written out, by quadrature on each cell."""
    twice_nu = {Matern12: 1, Matern32: 3, Matern52: 5}[type(kernel)]
    rate = float(np.sqrt(twice_nu) / kernel.lengthscales.numpy())

    def of(spline: BSpline, x: Any, order: int) -> Any:
        if order > spline.k:  # for which SciPy 1.14 writes where nothing is its own
            return np.zeros_like(x)
        return np.nan_to_num(spline(x, nu=order))

    def operator(spline: BSpline, x: Any) -> Any:
        values = [of(spline, x, order) for order in range(4)]
        if isinstance(kernel, Matern12):
            return values[1] + rate * values[0]
        if isinstance(kernel, Matern32):
            return values[2] + 2 * rate * values[1] + rate**2 * values[0]
        return values[3] + 3 * rate * values[2] + 3 * rate**2 * values[1] + rate**3 * values[0]

    edges = np.linspace(LOWER, UPPER, cells + 1)
    integral = sum(
        fixed_quad(lambda x: operator(g, x) * operator(h, x), a, b, n=8)[0]
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    )
    a = LOWER + 1e-12  # SciPy's splines are not defined where their support ends
    g0, g1, g2 = (of(g, a, order) for order in range(3))
    h0, h1, h2 = (of(h, a, order) for order in range(3))
    if isinstance(kernel, Matern12):
        value = integral / (2 * rate) + g0 * h0
    elif isinstance(kernel, Matern32):
        value = integral / (4 * rate**3) + g0 * h0 + g1 * h1 / rate**2
    else:  # the inverse of the covariance of f, f' and f'' at one point
        covariance = np.array(
            [[1, 0, -(rate**2) / 3], [0, rate**2 / 3, 0], [-(rate**2) / 3, 0, rate**4]]
        )
        ends = np.array([g0, g1, g2]) @ np.linalg.solve(covariance, np.array([h0, h1, h2]))
        value = 3 * integral / (16 * rate**5) + ends
    return float(value) / float(kernel.variance.numpy())


@pytest.mark.parametrize(
    ("kind", "degree"), [(Matern12, 1), (Matern12, 3), (Matern32, 2), (Matern32, 3), (Matern52, 3)]
)
def test_covariances_by_quadrature(kind: Any, degree: int) -> None:
    num = 8
    kernel = kind(variance=1.3, lengthscales=0.6)
    features, basis = SplineFeatures(LOWER, UPPER, num, degree), splines(num, degree)
    expected = [[inner_product(g, h, kernel, num - degree) for h in basis] for g in basis]
    np.testing.assert_allclose(Kuu(features, kernel), expected, rtol=1e-8, atol=1e-9)
    X = np.linspace(LOWER + 1e-6, UPPER - 1e-6, 31)[:, None]
    values = [np.nan_to_num(spline(X[:, 0])) for spline in basis]
    np.testing.assert_allclose(Kuf(features, kernel, X), values, atol=1e-12)


def test_limit_of_many_splines_is_the_kernel() -> None:
    X = np.random.default_rng(0).uniform(LOWER, UPPER, size=[40, 3])
    factors = [
        kind(variance=1.1, lengthscales=length, active_dims=[column])
        for kind, length, column in ((Matern12, 4.0, 2), (Matern32, 0.9, 0), (Matern52, 1.2, 1))
    ]
    for kernel, num, largest in ((factors[1], 60, 3e-4), (factors[2] * factors[1], 24, 5e-3)):
        columns = 2 if kernel is not factors[1] else 1
        features = SplineFeatures([LOWER] * columns, [UPPER] * columns, num, 3)
        explained = FiniteRank(kernel, features)(X).numpy()
        assert 0 < np.max(np.abs(explained - kernel(X))) < largest
        diagonal = FiniteRank(kernel, features)(X, full_cov=False)
        np.testing.assert_allclose(diagonal, np.diag(explained), rtol=1e-9)
        share = features.unexplained_share(kernel)
        left = 1 - np.mean(diagonal) / float(kernel(X[:1])[0, 0])
        assert left / 2 < share < 2 * left
        finer = SplineFeatures(
            [LOWER] * columns, [UPPER] * columns, features.enough(kernel, share / 8), 3
        )
        assert 0.5 < finer.unexplained_share(kernel) / (share / 8) < 1.5


def test_stock_models_and_gradients_to_rows() -> None:
    X = np.random.default_rng(0).uniform(LOWER, UPPER, size=[30, 2])
    kernel = Matern12(lengthscales=0.8, active_dims=[1]) * Matern32(active_dims=[0])
    features = SplineFeatures.from_data(X[:, ::-1], [5, 6], degree=2)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.1), features)
    assert np.isfinite(model.elbo((X, X[:, :1])))
    rows = tf.Variable(X)
    assert_slopes(
        lambda: tf.reduce_sum(tf.square(Kuf(features, kernel, tf.convert_to_tensor(rows)))),
        [rows],
        np.random.default_rng(1),
        step=1e-6,
    )


def test_wrong_arguments() -> None:
    zeros, ones, make = np.zeros(4), np.ones(4), SplineFeatures
    one, two = make(0.0, 1.0, 6, 2), make(zeros[:2], ones[:2], 6, 2)
    X, rows = np.full([3, 2], 0.5), np.array([[0.5, 0.5], [1.1, 0.2], [0.3, -0.1]])
    first, second = Matern32(active_dims=[0]), Matern12(active_dims=[1])
    smooth, kernel = SquaredExponential(active_dims=[1]), first * second
    model = StructuredSGPR((X + [[0], [0], [0.6]], X[:, :1]), kernel, two)
    wrong = [
        (one, Matern52(active_dims=[0]), "degree must be at least 3 for Matern52"),
        (one, smooth, "no covariance between SplineFeatures and SquaredExpon"),
        (one, Matern32(lengthscales=[1.0], active_dims=[0]), "kernel.lengthscales must be one"),
        (two, Matern32(lengthscales=[1.0, 1.0]), "kernel must be a product of 2 Matern kernels"),
        (two, first * smooth, "kernel must be a prod"),
        (two, first * Matern32(active_dims=[0]), "kernel must have one column of X for each"),
        (two, first * Matern32(), "kernel must have one column of X for each"),
    ]
    assert_refused(
        [
            (lambda: make(0.0, 1.0, 5, 0), "degree must be an integer of 1 or more, found 0"),
            (
                lambda: make(zeros[:2], ones[:2], [2, 9], 2),
                r"num must have an integer of degree . 1 = 3 or more .* found .2, 9.*2 columns",
            ),
            (lambda: make(zeros, ones, 5, 2), "lower must have at most 3 columns, found 4"),
            (lambda: make(1.0, 1.0, 5, 2), "upper must be above lower"),
            (
                lambda: make(zeros[:3], ones[:3], 10_000, 2),
                "num: the precision of 1,000,000,000,000 splines would",
            ),
            *((lambda case=case: Kuf(*case[:2], X), case[2]) for case in wrong),
            (lambda: Kuf(two, kernel, rows), "Xnew: 2 rows are outside of the box of the splines"),
            (lambda: model.statistics, r"data: 1 of 3 rows .* outside of .* SplineFeatures"),
        ]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="outside of the box"):
        tf.function(lambda X: Kuf(two, kernel, X))(tf.constant([[0.5, 1.1]], tf.float64))
