"""Every operator's Cholesky factor against NumPy's: values, gradients, batches, float types."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from interdomain.linalg import Diagonal, Full, LowRankUpdate
from interdomain.linalg.block_diagonal import BlockDiagonalRoot, block_diagonal
from interdomain.linalg.bordered import Bordered, BorderedRoot
from interdomain.linalg.diagonal import DiagonalRoot
from interdomain.linalg.full import FullRoot, stack
from interdomain.linalg.low_rank import LowRankRoot
from tests.conformance.helpers import assert_close, assert_same_results
from tests.extension.markov_operator import MarkovChain, MarkovRoot

SIZE = 6
Operator = tf.linalg.LinearOperator


def diagonal(v: tf.Tensor) -> Operator:
    return Diagonal(tf.exp(v[..., 0]))


def full(v: tf.Tensor) -> Operator:
    return Full(tf.matmul(v, v, transpose_b=True) + 2 * tf.eye(SIZE, dtype=v.dtype))


def low_rank(v: tf.Tensor) -> Operator:
    return LowRankUpdate(tf.exp(v[..., 0]), v[..., 1:4])


def rank_one(v: tf.Tensor) -> Operator:
    return LowRankUpdate(tf.exp(v[..., 0]), v[..., 1:2])


def bordered(v: tf.Tensor) -> Operator:
    base = LowRankUpdate(tf.exp(v[..., :4, 0]), v[..., :4, 1:3])
    last = v[..., 4:, :]
    corner = tf.matmul(last, last, transpose_b=True) + 2 * tf.eye(2, dtype=v.dtype)
    return Bordered(base, 0.1 * v[..., :4, 3:5], corner)


def blocks(v: tf.Tensor) -> Operator:
    return block_diagonal([full(v), diagonal(v), low_rank(v)])


def nested(v: tf.Tensor) -> Operator:
    return block_diagonal([diagonal(v), block_diagonal([low_rank(v), full(v)])])


def chain(v: tf.Tensor) -> Operator:
    """Of a family that is not the library's."""
    return MarkovChain(tf.sigmoid(v[..., 0, 1:]), tf.exp(v[..., 0, 0]))


ROOTS: dict[Callable[[tf.Tensor], Operator], type] = {
    diagonal: DiagonalRoot,
    full: FullRoot,
    low_rank: LowRankRoot,
    rank_one: LowRankRoot,
    bordered: BorderedRoot,
    blocks: BlockDiagonalRoot,
    nested: BlockDiagonalRoot,
    chain: MarkovRoot,
}
EACH = pytest.mark.parametrize("build", list(ROOTS), ids=lambda build: build.__name__)


def numbers(*leading: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*leading, SIZE, SIZE))


def transposed(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)


def close(actual: tf.Tensor, expected: np.ndarray, rtol: float = 1e-11) -> None:
    assert_close(actual, expected, rtol=rtol)


@EACH
@pytest.mark.parametrize("leading", [(), (2, 2)], ids=str)
def test_values(build: Callable[[tf.Tensor], Operator], leading: tuple[int, ...]) -> None:
    operator = build(tf.constant(numbers(*leading)))
    dense = operator.to_dense().numpy()
    L, inverse = np.linalg.cholesky(dense), np.linalg.inv(dense)
    root = operator.root()
    assert type(root) is ROOTS[build]
    size = dense.shape[-1]
    assert root.size == size
    x = np.random.default_rng(1).normal(size=(*leading, size, 4))
    close(root.solve(x), np.linalg.solve(L, x))
    close(root.solve(x, adjoint=True), np.linalg.solve(transposed(L), x))
    close(root.log_determinant(), np.linalg.slogdet(dense)[1] / 2)
    close(root.inverse_diagonal(), np.diagonal(inverse, axis1=-2, axis2=-1))
    close(operator.whiten(tf.constant(x)), np.linalg.solve(L, x))
    kept, tensors = root.inverse()
    for way in (kept, pickle.loads(pickle.dumps(kept))):
        close(way(tensors, x), np.linalg.solve(L, x))
        close(way(tensors, x, adjoint=True), np.linalg.solve(transposed(L), x))


@EACH
def test_gradients(build: Callable[[tf.Tensor], Operator]) -> None:
    """Of all that is asked of a root, against those of dense algebra."""
    v = tf.constant(numbers())
    size = build(v).domain_dimension
    x = np.random.default_rng(2).normal(size=(size, 3))

    def by_root() -> list[tf.Tensor]:
        operator = build(v)
        root = operator.root()
        kept, tensors = root.inverse()
        return [
            root.solve(x),
            root.solve(x, adjoint=True),
            operator.whiten(tf.constant(x)),
            kept(tensors, x),
            root.log_determinant(),
            root.inverse_diagonal(),
        ]

    def by_dense() -> list[tf.Tensor]:
        dense = build(v).to_dense()
        L = tf.linalg.cholesky(dense)
        solved = tf.linalg.triangular_solve(L, x)
        return [
            solved,
            tf.linalg.triangular_solve(L, x, adjoint=True),
            solved,
            solved,
            tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L))),
            tf.linalg.diag_part(tf.linalg.inv(dense)),
        ]

    assert_same_results(by_root, by_dense, [v], rtol=1e-9)


@EACH
def test_stacked_is_each_alone(build: Callable[[tf.Tensor], Operator]) -> None:
    alone = [build(tf.constant(numbers(seed=seed))) for seed in range(3)]
    stacked = stack(alone)
    close(stacked.to_dense(), np.stack([operator.to_dense() for operator in alone]), 1e-15)
    x = np.random.default_rng(3).normal(size=(3, *alone[0].shape[:1], 2))
    solved = stacked.root().solve(x)
    for operator, columns, result in zip(alone, x, solved, strict=True):
        close(result, operator.root().solve(columns).numpy())


def test_stacks_keep_the_structure() -> None:
    first, second = (tf.constant(numbers(seed=seed)) for seed in range(2))
    for build in (diagonal, full, low_rank, bordered, blocks, nested):
        assert type(stack([build(first), build(second)]).root()) is ROOTS[build]
    of_two_ranks = stack([low_rank(first), rank_one(second)])
    assert type(of_two_ranks.root()) is LowRankRoot
    close(of_two_ranks.to_dense()[1], rank_one(second).to_dense().numpy(), 1e-15)


def test_stacks_of_several_kinds_are_dense() -> None:
    first, second = (tf.constant(numbers(seed=seed)) for seed in range(2))
    mixed = stack([diagonal(first), full(second)])
    close(mixed.to_dense()[0], diagonal(first).to_dense().numpy(), 1e-15)
    assert type(mixed.root()) is FullRoot
    other_sizes = block_diagonal([diagonal(first), full(second), diagonal(second)])
    other_order = block_diagonal([full(first), diagonal(second), diagonal(first)])
    matrices = stack([other_sizes, other_order]).to_dense()
    close(matrices[1], other_order.to_dense().numpy(), 1e-15)
