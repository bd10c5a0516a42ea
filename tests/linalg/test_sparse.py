"""Banded matrices, stencils of grids and arrows, against the dense matrices they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy.linalg import toeplitz

from interdomain.linalg.arrow import Arrow, ArrowFactor, arrow_terms
from interdomain.linalg.banded import KroneckerBanded, inverse_and_log_determinant
from interdomain.linalg.dissection import Dissection
from interdomain.linalg.stencil_factors import NotFactorised
from interdomain.training.losses import NumericalBreakdown, tensorflow_errors_as_breakdowns

SHAPES = [((7,), 3), ((90,), 2), ((13, 17), 2), ((24, 25), 3), ((9, 7, 8), 1), ((8, 5, 6), 2)]


def stencil_of(matrix: np.ndarray, shape: tuple[int, ...], reach: int) -> np.ndarray:
    """Entry by entry."""
    stencil = np.zeros([*shape, *[2 * reach + 1] * len(shape)])
    for node in np.ndindex(*shape):
        for step in np.ndindex(*[2 * reach + 1] * len(shape)):
            other = tuple(np.add(node, step) - reach)
            if all(0 <= place < size for place, size in zip(other, shape, strict=True)):
                row, column = (np.ravel_multi_index(at, shape) for at in (node, other))
                stencil[node + step] = matrix[row, column]
    return stencil


def matrix_on(shape: tuple[int, ...], reach: int, seed: int = 0) -> np.ndarray:
    """Positive definite, with entries between nodes that are near."""
    near = np.ones([1, 1])
    for size in shape:
        near = np.kron(near, toeplitz(np.arange(size) <= reach))
    values = np.random.default_rng(seed).normal(size=near.shape) * near
    return (values + values.T) / 2 + np.diag(np.sum(np.abs(values + values.T), axis=1))


@pytest.mark.parametrize(("shape", "reach"), SHAPES)
def test_factor_of_a_stencil(shape: tuple[int, ...], reach: int) -> None:
    matrix = matrix_on(shape, reach)
    stencil, order = stencil_of(matrix, shape, reach), Dissection(shape, reach)
    np.testing.assert_array_equal(order.dense(stencil), matrix)
    factor, inverse = order.factorise(stencil), np.linalg.inv(matrix)
    log = 2 * factor.log_determinant()
    np.testing.assert_allclose(log, np.linalg.slogdet(matrix)[1], rtol=1e-12)
    expected = stencil_of(inverse, shape, reach)
    np.testing.assert_allclose(factor.inverse_band(), expected, rtol=1e-9, atol=1e-14)
    columns = np.random.default_rng(1).normal(size=[len(matrix), 3])
    half = factor.solve(columns)
    np.testing.assert_allclose(half.T @ half, columns.T @ inverse @ columns, rtol=1e-10)
    np.testing.assert_allclose(factor.solve(half, adjoint=True), inverse @ columns, rtol=1e-9)
    products = order.products(columns, columns[:, ::-1].copy())
    both = columns @ columns[:, ::-1].T
    np.testing.assert_allclose(products, stencil_of(both, shape, reach), atol=1e-12)
    with pytest.raises(NotFactorised):
        order.factorise(stencil_of(matrix - 100 * np.eye(len(matrix)), shape, reach))


@pytest.mark.parametrize(("size", "reach"), [(3, 1), (16, 3), (33, 2), (100, 5)])
def test_inverse_and_determinant_of_bands(size: int, reach: int) -> None:
    """And their gradients, against those of the dense matrix."""
    matrix = matrix_on((size,), min(reach, size - 1))
    stencil = tf.constant(stencil_of(matrix, (size,), reach))
    factors = np.random.default_rng(1).normal(size=stencil.shape)
    rows, steps = np.nonzero(stencil.numpy())
    places = np.stack([rows, rows + steps - reach], axis=1)
    with tf.GradientTape() as tape:
        tape.watch(stencil)
        inverse, log = inverse_and_log_determinant(stencil)
        value = log + tf.reduce_sum(factors * inverse)
    found = np.zeros([size, size])
    found[tuple(places.T)] = tape.gradient(value, stencil).numpy()[rows, steps]
    dense = tf.constant(matrix)
    with tf.GradientTape() as tape:
        tape.watch(dense)
        entries = tf.gather_nd(tf.linalg.inv(dense), places)
        expected = tf.linalg.slogdet(dense)[1] + tf.reduce_sum(factors[rows, steps] * entries)
    by_dense = tape.gradient(expected, dense).numpy()
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    # Entries that are alike change together.
    expected = (by_dense + by_dense.T) * (matrix != 0)
    np.testing.assert_allclose(found + found.T, expected, atol=1e-10)


def test_kronecker_product() -> None:
    shapes, reach = (6, 5, 4), 2
    matrices = [matrix_on((size,), reach, seed=size) for size in shapes]
    stencils = [
        tf.constant(stencil_of(matrix, (size,), reach))
        for matrix, size in zip(matrices, shapes, strict=True)
    ]
    dense = np.kron(np.kron(matrices[0], matrices[1]), matrices[2])
    operator = KroneckerBanded(stencils, tf.float64)
    np.testing.assert_allclose(operator.to_dense(), dense, rtol=1e-14)
    np.testing.assert_allclose(operator.diag_part(), np.diag(dense), rtol=1e-14)
    np.testing.assert_allclose(operator.stencil(), stencil_of(dense, shapes, reach), rtol=1e-14)
    inverse = stencil_of(np.linalg.inv(dense), shapes, reach)
    np.testing.assert_allclose(operator.inverse(), inverse, atol=1e-14)
    log = np.linalg.slogdet(dense)[1]
    np.testing.assert_allclose(operator.log_determinant(), log, rtol=1e-13)
    columns = np.random.default_rng(0).normal(size=[len(dense), 2])
    solved = operator.root().solve(tf.constant(columns))
    expected = np.linalg.solve(np.linalg.cholesky(dense), columns)
    np.testing.assert_allclose(solved, expected, rtol=1e-9)
    wider, inverse = operator.widened(5), stencil_of(np.linalg.inv(dense), shapes, 5)
    np.testing.assert_allclose(wider.inverse(), inverse, atol=1e-14)
    np.testing.assert_allclose(wider.log_determinant(), log, rtol=1e-13)
    assert operator.cast(tf.float32).to_dense().dtype == tf.float32


@pytest.mark.parametrize("num_others", [0, 3])
def test_arrow_terms_and_their_gradients(num_others: int) -> None:
    shape, reach, noise = (9, 8), 2, 0.3
    order, rng = Dissection(shape, reach), np.random.default_rng(0)
    size = order.size
    prior, gram = (matrix_on(shape, reach, seed) for seed in (1, 2))
    border = rng.normal(size=[size, num_others])
    corner = border.T @ border + 3 * np.eye(num_others)
    others = 2 * np.eye(num_others) + np.ones([num_others, num_others])
    columns = rng.normal(size=[size + num_others, 2])
    arrow = Arrow(stencil_of(gram, shape, reach), border, corner)
    inputs = [
        tf.constant(part)
        for part in (stencil_of(prior, shape, reach), others, columns, np.array(noise))
    ]
    sums = Arrow(*map(tf.constant, arrow))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([*inputs, *sums])
        log, fit = arrow_terms(order, inputs[:2], sums, *inputs[2:])
        value = log + 0.7 * fit
        log, fit = arrow_terms(order, inputs[:2], sums, *inputs[2:], gram_gradient=True)
        same = log + 0.7 * fit
    gradients, also = (tape.gradient(part, [*inputs, *sums]) for part in (value, same))
    assert gradients[4:] == [None] * 3
    np.testing.assert_array_equal(value, same)
    for one, other in zip(gradients[:4], also, strict=False):
        np.testing.assert_array_equal(one, other)
    dense = [tf.constant(part) for part in (prior, others, columns, np.array(noise))]
    all_gram = tf.constant(np.block([[gram, border], [border.T, corner]]))
    with tf.GradientTape() as tape:
        tape.watch([*dense, all_gram])
        operators = [tf.linalg.LinearOperatorFullMatrix(part) for part in dense[:2]]
        precision = tf.linalg.LinearOperatorBlockDiag(operators).to_dense() + all_gram / dense[3]
        solved = tf.linalg.solve(precision, dense[2] / dense[3])
        expected = tf.linalg.slogdet(precision)[1]
        expected += 0.7 * tf.reduce_sum(solved * dense[2]) / dense[3]
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    *by_dense, to_gram = tape.gradient(expected, [*dense, all_gram])
    to_gram = to_gram.numpy()
    right = stencil_of(to_gram[:size, :size], shape, reach)
    np.testing.assert_allclose(also[4], right, atol=1e-11)
    right = to_gram[:size, size:] + to_gram[size:, :size].T
    np.testing.assert_allclose(also[5], right, atol=1e-11)
    np.testing.assert_allclose(also[6], to_gram[size:, size:], atol=1e-11)
    stencil_gradient = stencil_of(by_dense[0].numpy(), shape, reach)
    np.testing.assert_allclose(gradients[0], stencil_gradient, atol=1e-11)
    for found, right in zip(gradients[1:4], by_dense[1:], strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-12)

    total = Arrow(inputs[0].numpy(), 0 * border, others) + arrow * (1 / noise)
    inverse = ArrowFactor(order, total).inverse_band()
    right = np.linalg.inv(precision)
    np.testing.assert_allclose(inverse.stencil, stencil_of(right[:size, :size], shape, reach))
    np.testing.assert_allclose(inverse.border, right[:size, size:], atol=1e-13)
    np.testing.assert_allclose(inverse.corner, right[size:, size:], rtol=1e-10)


def test_arrow_that_is_not_positive_definite_or_finite() -> None:
    order = Dissection((4, 4), 1)
    stencil = tf.constant(stencil_of(-10 * np.eye(16), (4, 4), 1))
    none, columns = tf.zeros([0, 0], tf.float64), tf.ones([16, 1], tf.float64)
    gram = Arrow(stencil, tf.zeros([16, 0], tf.float64), none)
    one = tf.ones([], tf.float64)
    for function in (arrow_terms, tf.function(arrow_terms, autograph=False)):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="not positive definite in float64"
        ):
            function(order, (stencil, none), gram, columns, one)
        log, fit = function(order, (stencil, none), gram, columns, one * np.nan)
        assert np.isnan(log) and np.isnan(fit)


def test_an_arrow_that_cannot_be_factorised() -> None:
    """An error that line searches reject, in graphs too, or NaN where this is wanted."""
    shape, reach = (13,), 2
    order, prior = Dissection(shape, reach), stencil_of(matrix_on(shape, reach), shape, reach)
    gram = Arrow.without_border(-100 * prior, np.zeros([0, 0]))
    columns, noise = tf.ones([13, 1], tf.float64), tf.constant(0.1, tf.float64)

    def terms(refuse: bool) -> tuple[tf.Tensor, tf.Tensor]:
        corner = tf.zeros([0, 0], tf.float64)
        return arrow_terms(order, [tf.constant(prior), corner], gram, columns, noise, refuse=refuse)

    for evaluate in (terms, tf.function(terms, autograph=False)):
        with pytest.raises(NumericalBreakdown, match="a matrix factorisation failed"):
            with tensorflow_errors_as_breakdowns():
                evaluate(True)
        assert np.all(np.isnan(evaluate(False)))
