"""Functionals of splines by quadrature and by differences of the splines' values."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.kernels import Matern12, Matern32, Matern52
from scipy.special import roots_legendre

from interdomain.functionals import Areas, Blur, Derivative, Mean, Value
from interdomain.inducing_variables import SplineFeatures
from interdomain.kernels import FiniteRank, Functional
from tests.conformance.helpers import assert_refused, assert_slopes

LOWER, UPPER = np.array([-0.7, 2.0]), np.array([1.9, 5.0])
CELLS = np.array([8, 5])
STEPS = (UPPER - LOWER) / CELLS
NODES, WEIGHTS = roots_legendre(8)


def two_columns(degree: int) -> tuple[Any, Any]:
    """The first column of the box is input 2, and the second is input 0; input 1 is not seen."""
    kind = {1: Matern12, 2: Matern32, 3: Matern52}[degree]
    kernel = kind(active_dims=[2]) * kind(active_dims=[0])
    return SplineFeatures(LOWER, UPPER, list(CELLS + degree), degree), kernel


def pieces(x: float, edges: Any, density: Any, box: int) -> tuple[Any, Any]:
    """Nodes and weights of a composite rule, without a knot of the splines inside a piece."""
    knots = LOWER[box] + STEPS[box] * np.arange(CELLS[box] + 1) - x
    edges = np.unique(np.concatenate([edges, np.clip(knots, edges[0], edges[-1])]))
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    nodes = middle[:, None] + half[:, None] * NODES
    weights = half[:, None] * WEIGHTS * density(nodes)
    return np.clip(x + nodes.ravel(), LOWER[box], UPPER[box]), weights.ravel()


def mean_rule(x: float, width: float, box: int) -> tuple[Any, Any]:
    edges = np.array([-width / 2, width / 2])
    return (pieces(x, edges, lambda _: 1 / width, box)) if width else (np.array([x]), np.ones(1))


def blur_rule(x: float, deviation: float, box: int) -> tuple[Any, Any]:
    """Beyond the box the function has its value at the end."""
    if not deviation:
        return np.array([x]), np.ones(1)

    def density(z: Any) -> Any:
        return np.exp(-0.5 * (z / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))

    return pieces(x, deviation * np.linspace(-9, 9, 25), density, box)


def slope_rule(x: float, order: int) -> tuple[Any, Any]:
    """Differences that are exact for polynomials of degree 4."""
    step = 2e-3
    weights = [[0, 0, 1, 0, 0], [1, -8, 0, 8, -1], [-1, 16, -30, 16, -1]][order]
    return x + step * np.arange(-2, 3), np.array(weights) / [1, 12 * step, 12 * step**2][order]


def expected(features: Any, kernel: Any, inputs: Any, rules: Any) -> Any:
    """The functional of values, ``[M, n]``: a product of rules for the columns of the box."""
    columns = []
    for row in inputs:
        first, second = (rule(float(row[k])) for rule, k in zip(rules, (2, 0), strict=True))
        points = np.stack(np.meshgrid(second[0], 0.0, first[0], indexing="ij"), axis=-1)
        weights = second[1][:, None] * first[1]
        values = Kuf(features, kernel, points.reshape(-1, 3)).numpy()
        columns.append(values @ weights.ravel())
    return np.stack(columns, axis=1)


def rows_between_knots(rng: Any, half: Any) -> Any:
    """Rows of three inputs; those at the ends of the box, as far as their means allow, too."""
    ends = [LOWER + half, UPPER - half]
    cells = rng.integers(0, CELLS, size=[6, 2]) + rng.uniform(0.1, 0.9, size=[6, 2])
    inside = np.clip(LOWER + STEPS * cells, *ends)
    places = np.concatenate([inside, ends])
    return np.stack([places[:, 1], rng.normal(size=8), places[:, 0]], axis=1)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_by_quadrature(degree: int) -> None:
    features, kernel = two_columns(degree)
    rng, zero = np.random.default_rng(degree), np.zeros(2)
    functionals, rules, halves = [], [], []

    def add(functional: Any, half: Any, *rule: Any) -> None:
        functionals.append(functional)
        halves.append(np.array(half))
        rules.append(rule)

    for widths in ([0.4, 0.7], [1.3, 0.0], [1e-6, 1.8], [2 * STEPS[0], 3 * STEPS[1]], [2.6, 0.2]):
        first, second = widths
        add(
            Mean([second, 0.3, first]),
            np.array(widths) / 2,
            lambda x, w=first: mean_rule(x, w, 0),
            lambda x, w=second: mean_rule(x, w, 1),
        )
    for deviations in ([0.02, 0.0], [0.3, 0.5]):
        first, second = deviations
        add(
            Blur([second**2, 4.0, first**2]),
            zero,
            lambda x, s=first: blur_rule(x, s, 0),
            lambda x, s=second: blur_rule(x, s, 1),
        )
    kernel_of_rows = Functional(FiniteRank(kernel, features), functionals)
    X, right = [], []
    for number, half in enumerate(halves):
        inputs = rows_between_knots(rng, half)
        X.append(np.column_stack([inputs, np.full(len(inputs), number)]))
        right.append(expected(features, kernel, inputs, rules[number]))
    order = rng.permutation(8 * len(X))
    rows, values = np.concatenate(X)[order], np.concatenate(right, axis=1)[:, order]
    found = Kuf(features, kernel_of_rows, rows)
    np.testing.assert_allclose(found, values, rtol=1e-8, atol=1e-13)
    compiled = tf.function(
        lambda X: Kuf(features, kernel_of_rows, X),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 4], tf.float64)],
    )
    np.testing.assert_allclose(compiled(rows), found, atol=1e-15)
    with gpflow.config.as_context():
        gpflow.config.set_default_float(np.float32)
        single = Kuf(features, kernel_of_rows, rows.astype(np.float32))
        assert single.dtype == tf.float32
        np.testing.assert_allclose(single, found, atol=1e-5)

    # The same boxes, with a width for each row.
    mean = Mean([0.0, 9.0, 0.0], width_columns=[1, None, 4])
    with_widths = Functional(FiniteRank(kernel, features), mean)
    for number, half in enumerate(halves[:5]):
        first, second, third = X[number][:, :3].T
        columns = [first, np.full(8, 2 * half[1]), second, third, np.full(8, 2 * half[0])]
        found = Kuf(features, with_widths, np.column_stack(columns))
        np.testing.assert_allclose(found, right[number], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("degree", [2, 3])
def test_slopes_by_differences(degree: int) -> None:
    features, kernel = two_columns(degree)
    inputs = rows_between_knots(np.random.default_rng(degree), 0.01)[:6]

    def found(functional: Any) -> Any:
        prior = FiniteRank(kernel, features)
        return Kuf(features, Functional(prior, functional), inputs).numpy()

    def right(first: int, second: int) -> Any:
        orders = [lambda x, order=order: slope_rule(x, order) for order in (first, second)]
        return expected(features, kernel, inputs, orders)

    assert not np.any(found(Derivative(1)))
    for order in (1, 2)[: degree - 1]:
        np.testing.assert_allclose(found(Derivative(2, order)), right(order, 0), atol=1e-8)
        np.testing.assert_allclose(found(Derivative(0, order)), right(0, order), atol=1e-8)
    total = 2.0 * Mean([0.01, 0.0, 0.01]) - Value() + 0.5 * Derivative(0) + 3.0 * Derivative(1)
    rules = [lambda x, box=box: mean_rule(x, 0.01, box) for box in (0, 1)]
    parts = [expected(features, kernel, inputs, rules), right(0, 0), right(0, 1)]
    expected_total = 2 * parts[0] - parts[1] + 0.5 * parts[2]
    np.testing.assert_allclose(found(total), expected_total, atol=1e-9)


def test_gradients_to_rows() -> None:
    kernel, features = Matern32(), SplineFeatures(0.0, 1.0, 9, 3)
    X = np.random.default_rng(0).uniform(0.3, 0.7, size=[12, 3])
    X[:, 1], X[:, 2] = X[:, 1] / 3, np.arange(12) % 4
    functionals = [Mean(width_columns=[1]), Mean([0.3]) - Value(), Blur([0.02]), Derivative(0)]
    rows, both = tf.Variable(X[:, :2]), Functional(FiniteRank(kernel, features), functionals)

    def total() -> tf.Tensor:
        whole = tf.concat([rows, X[:, 2:]], axis=1)
        return tf.reduce_sum(tf.square(Kuf(features, both, whole)))

    assert_slopes(total, [rows], np.random.default_rng(1), step=1e-6)


def test_widths_that_vanish() -> None:
    """Means over boxes of a width near zero are values, with gradients that are numbers."""
    kernel, features = Matern12(), SplineFeatures(0.0, 1.0, 9, 2)
    x = np.concatenate([np.linspace(0.1, 0.9, 9), np.arange(1, 7) / 7])  # knots, too
    values = Kuf(features, kernel, x[:, None])
    means = Functional(FiniteRank(kernel, features), Mean(width_columns=[1]))
    for width in (0.0, 1e-12, 1e-6):
        rows = tf.constant(np.column_stack([x, np.full(len(x), width)]))
        with tf.GradientTape() as tape:
            tape.watch(rows)
            found = Kuf(features, means, rows)
        np.testing.assert_allclose(found, values, atol=1e-11)
        assert np.all(np.isfinite(tape.gradient(found, rows)))


def test_refused() -> None:
    kernel, features = Matern12(), SplineFeatures(0.0, 1.0, 9, 1)

    def call(functional: Any, *row: float) -> Any:
        prior = FiniteRank(kernel, features)
        return lambda: Kuf(features, Functional(prior, functional), np.array([row]))

    assert_refused(
        [
            (
                call(Derivative(0), 0.5),
                "functionals must have derivatives that exist",
            ),
            (call(Mean([0.2]), 0.95), "Xnew: 1 rows are outside of the box of the splines"),
            (call(Mean(width_columns=[1]), 0.5, 1.1), "Xnew: 1 rows are outside of the box"),
        ]
    )
    district = Areas(np.array([[0.2], [0.4]]))
    values = Kuf(features, kernel, np.array([[0.2], [0.4]]))
    found = Kuf(features, Functional(FiniteRank(kernel, features), district), np.zeros([1, 1]))
    np.testing.assert_allclose(found[:, 0], np.mean(values, axis=1), atol=1e-15)
