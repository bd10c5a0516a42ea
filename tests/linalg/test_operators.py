"""Every structure against the dense matrix that it stands for: factors, products, sums, gradients,
batches, float types."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy.linalg import toeplitz

from interdomain.linalg import Diagonal, Full, LowRankUpdate, StructuredOperator
from interdomain.linalg.arrow import Arrow, ArrowFactor
from interdomain.linalg.banded import KroneckerBanded, KroneckerBandedRoot
from interdomain.linalg.block_diagonal import BlockDiagonalRoot, block_diagonal
from interdomain.linalg.bordered import Bordered, BorderedRoot
from interdomain.linalg.diagonal import DiagonalRoot
from interdomain.linalg.full import FullRoot, stack
from interdomain.linalg.low_rank import LowRankRoot
from interdomain.linalg.operators import Summable
from interdomain.linalg.wave_tables import BoxWaves, WaveGram, WaveTables
from tests.conformance.helpers import assert_close, assert_same_results
from tests.extension.markov_operator import MarkovChain, MarkovRoot
from tests.linalg.test_sparse import stencil_of

SIZE = 6
Operator = Any


def diagonal(v: tf.Tensor) -> Operator:
    return Diagonal(tf.exp(v[..., 0]))


def full(v: tf.Tensor) -> Operator:
    return Full(tf.matmul(v, v, transpose_b=True) + 2 * tf.eye(SIZE, dtype=v.dtype))


def low_rank(v: tf.Tensor, rank: int = 3) -> Operator:
    return LowRankUpdate(tf.exp(v[..., 0]), v[..., 1 : 1 + rank])


def rank_one(v: tf.Tensor) -> Operator:
    return low_rank(v, 1)


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


def near(v: tf.Tensor, *shape: int, reach: int) -> tf.Tensor:
    """Positive definite, with entries between nodes of a grid that are near."""
    mask = np.ones([1, 1])
    for size in shape:
        mask = np.kron(mask, toeplitz(np.arange(size) <= reach))
    values = (v + tf.linalg.matrix_transpose(v))[: len(mask), : len(mask)] * mask
    return values + tf.linalg.diag(1 + tf.reduce_sum(tf.abs(values), axis=1))


def kronecker(v: tf.Tensor) -> Operator:
    """Three nodes in one column, two in another."""
    stencils = []
    for size in (3, 2):
        bands = tf.linalg.diag_part(near(v, size, reach=1), k=(-1, 1), align="LEFT_RIGHT")
        stencils.append(tf.transpose(bands[::-1]))
    return KroneckerBanded(stencils, tf.float64)


def on_grid(v: tf.Tensor, *shape: int, reach: int) -> np.ndarray:
    return stencil_of(near(v, *shape, reach=reach).numpy(), shape, reach)


def stencil(v: tf.Tensor) -> Operator:
    return Arrow.without_border(on_grid(v, SIZE, reach=2))


def grid(v: tf.Tensor) -> Operator:
    return Arrow.without_border(on_grid(v, 3, 2, reach=1))


def arrow(v: tf.Tensor) -> Operator:
    corner = near(v, 2, reach=1).numpy()
    return Arrow(on_grid(v, 2, 2, reach=1), 0.1 * v[:4, 4:].numpy(), corner)


FUNCTIONS = np.array([[0, 0], [1, 0], [2, 1], [0, 2], [1, 2], [3, 1]])
TABLES = WaveTables(BoxWaves(np.arange(2), np.full(2, -3.0), np.array([6.0, 7.0]), FUNCTIONS))


def waves(v: tf.Tensor) -> Operator:
    """Of 18 rows."""
    table = TABLES.table(np.reshape(v, [-1, 2]), np.ones([18, 1]))[0]
    return WaveGram(TABLES, table)


ROOTS: dict[Callable[[tf.Tensor], Operator], type] = {
    diagonal: DiagonalRoot,
    full: FullRoot,
    low_rank: LowRankRoot,
    rank_one: LowRankRoot,
    bordered: BorderedRoot,
    blocks: BlockDiagonalRoot,
    nested: BlockDiagonalRoot,
    chain: MarkovRoot,
    kronecker: KroneckerBandedRoot,
    stencil: ArrowFactor,
    grid: ArrowFactor,
    arrow: ArrowFactor,
    waves: FullRoot,
}
ARRAYS = (stencil, grid, arrow, waves)
SINGLE = (kronecker, *ARRAYS)


def named(build: Any) -> str:
    return getattr(build, "__name__", str(build))


EACH = pytest.mark.parametrize("build", [b for b in ROOTS if b not in ARRAYS], ids=named)


def numbers(*leading: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(*leading, SIZE, SIZE))


def transposed(matrix: np.ndarray) -> np.ndarray:
    return np.swapaxes(matrix, -1, -2)


def close(actual: tf.Tensor, expected: np.ndarray, rtol: float = 1e-11) -> None:
    assert_close(actual, expected, rtol=rtol)


@pytest.mark.parametrize(
    ("build", "leading"),
    [(build, ()) for build in ROOTS] + [(build, (2, 2)) for build in ROOTS if build not in SINGLE],
    ids=named,
)
def test_values(build: Callable[[tf.Tensor], Operator], leading: tuple[int, ...]) -> None:
    matrix = build(tf.constant(numbers(*leading)))
    dense = np.asarray(matrix.to_dense())
    size, inverse = dense.shape[-1], np.linalg.inv(dense)
    x = np.random.default_rng(1).normal(size=(*leading, size, 4))
    close(matrix.matmul(x), dense @ x)
    close(matrix.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1))
    root = matrix.root()
    assert type(root) is ROOTS[build]
    assert root.size == size
    half = root.solve(x)
    close(tf.matmul(half, half, transpose_a=True), transposed(x) @ inverse @ x)
    close(root.solve(half, adjoint=True), inverse @ x)
    close(root.log_determinant(), np.linalg.slogdet(dense)[1] / 2)
    close(root.inverse_diagonal(), np.diagonal(inverse, axis1=-2, axis2=-1))
    if isinstance(root, ArrowFactor):
        close(root.inverse_band().to_dense(), np.where(dense, inverse, 0.0))
        return
    L = np.linalg.cholesky(dense)
    close(half, np.linalg.solve(L, x))
    close(root.solve(x, adjoint=True), np.linalg.solve(transposed(L), x))
    if isinstance(matrix, StructuredOperator):
        close(matrix.whiten(tf.constant(x)), np.linalg.solve(L, x))
    kept, tensors = root.inverse()
    for way in (kept, pickle.loads(pickle.dumps(kept))):
        close(way(tensors, x), np.linalg.solve(L, x))
        close(way(tensors, x, adjoint=True), np.linalg.solve(transposed(L), x))


@pytest.mark.parametrize("build", [diagonal, full, *ARRAYS], ids=named)
def test_sums(build: Callable[[tf.Tensor], Operator]) -> None:
    """Matrices, and the vectors that they are stored as."""
    first, second = (build(tf.constant(numbers(seed=seed))) for seed in range(2))
    assert isinstance(first, Summable)
    expected = first.to_dense() + 0.5 * second.to_dense()
    packed = first.packed() + 0.5 * second.packed()
    unpack = tf.function(lambda packed: first.unpacked(packed).parts, autograph=False)
    ways = [first + second * 0.5, first.unpacked(packed), first.with_parts(*unpack(packed))]
    for total in ways:
        assert type(total) is type(first)
        close(total.to_dense(), expected)
        close(total.matmul(np.eye(SIZE)), expected)
        close(total.root().log_determinant(), np.linalg.slogdet(expected)[1] / 2)


def test_an_arrow_of_no_rows() -> None:
    nothing = Arrow.zeros([2, 2, 3, 3], 2)
    some = arrow(tf.constant(numbers()))
    close((nothing + some).to_dense(), some.to_dense())
    assert nothing.packed().shape == some.packed().shape
    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive definite in float64"):
        (some * -1.0).root()
    order = pickle.loads(pickle.dumps(some.order))
    assert order.stencil_shape == (2, 2, 3, 3) and some.order is order


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
    two_ranks = stack([low_rank(first), rank_one(second)])
    assert type(two_ranks.root()) is LowRankRoot
    close(two_ranks.to_dense()[1], rank_one(second).to_dense().numpy(), 1e-15)


def test_stacks_of_several_kinds_are_dense() -> None:
    first, second = (tf.constant(numbers(seed=seed)) for seed in range(2))
    mixed = stack([diagonal(first), full(second)])
    close(mixed.to_dense()[0], diagonal(first).to_dense().numpy(), 1e-15)
    assert type(mixed.root()) is FullRoot
    other_sizes = block_diagonal([diagonal(first), full(second), diagonal(second)])
    other_order = block_diagonal([full(first), diagonal(second), diagonal(first)])
    matrices = stack([other_sizes, other_order]).to_dense()
    close(matrices[1], other_order.to_dense().numpy(), 1e-15)
