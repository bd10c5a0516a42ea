"""Kronecker products of banded matrices, one matrix per column of X: Kuu of splines on a grid.

A banded matrix of half-width p is a *stencil* ``[M, 2p + 1]``: row m has the entries of columns
``m - p`` to ``m + p``, and zeros beyond the ends. The Kronecker product of several matrices is a
stencil of the grid (:mod:`interdomain.linalg.dissection`).

Determinants and inverses are computed by cyclic reduction, which eliminates every other block of
rows in each step. This takes O(M) operations in O(log M) steps, with gradients by TensorFlow.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import IntArray
from .full import Full, FullRoot
from .operators import Root, StructuredOperator

_BLOCK = 4
"""The rows of a block, if the band is not wider; larger blocks cost more, and are not faster."""


class KroneckerBanded(StructuredOperator):
    """The matrix ``K_1 (x) K_2 (x) ...`` for banded positive-definite matrices.

    :param stencils: One stencil per matrix, ``[M_d, 2p + 1]`` in float64, the type of computations.
    :param dtype: The type of results.
    """

    def __init__(self, stencils: Sequence[tf.Tensor], dtype: tf.DType) -> None:
        self._stencils = tuple(stencils)
        super().__init__(
            dtype=dtype,
            is_self_adjoint=True,
            is_positive_definite=True,
            is_square=True,
            parameters={"stencils": self._stencils, "dtype": dtype},
        )

    @property
    def _composite_tensor_fields(self) -> tuple[str, ...]:
        return ("stencils",)

    def _shape(self) -> tf.TensorShape:
        return tf.TensorShape([int(np.prod([len_of(part) for part in self._stencils]))] * 2)

    def _shape_tensor(self) -> tf.Tensor:
        return tf.constant(self._shape().as_list())

    @property
    def _factors(self) -> tf.linalg.LinearOperator:
        return _kronecker([dense_of(stencil) for stencil in self._stencils])

    def _to_dense(self) -> tf.Tensor:
        return tf.cast(self._factors.to_dense(), self.dtype)

    def _matmul(self, x: tf.Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> tf.Tensor:
        product = self._factors.matmul(tf.cast(x, tf.float64), adjoint_arg=adjoint_arg)
        return tf.cast(product, self.dtype)

    def _diag_part(self) -> tf.Tensor:
        return tf.cast(_diagonal(self._stencils), self.dtype)

    def root(self) -> KroneckerBandedRoot:
        return KroneckerBandedRoot(self._stencils, self.dtype)

    def stacked_with(self, *others: KroneckerBanded) -> StructuredOperator:
        return Full(tf.stack([each.to_dense() for each in (self, *others)]))

    def cast(self, dtype: tf.DType) -> KroneckerBanded:
        return KroneckerBanded(self._stencils, dtype)

    def widened(self, reach: int) -> KroneckerBanded:
        """This matrix with zeros in its stencils up to the half-width ``reach``. The stencil of the
        inverse then has entries there."""
        added = reach - self._stencils[0].shape[1] // 2
        stencils = [tf.pad(part, [[0, 0], [added, added]]) for part in self._stencils]
        return KroneckerBanded(stencils, self.dtype)

    def stencil(self) -> tf.Tensor:
        """The matrix as a stencil of the grid, ``[M_1, ..., M_D, 2p + 1, ..., 2p + 1]``; in
        float64."""
        return _product(self._stencils)

    def inverse(self) -> tf.Tensor:
        """The entries of the inverse within the stencil of the matrix; in float64."""
        return self.root().inverse_band()

    def log_determinant(self) -> tf.Tensor:
        """``log det K``, in float64."""
        return _log_determinant(self._stencils)


class KroneckerBandedRoot(FullRoot):
    """The Kronecker product of the Cholesky factors of the columns' matrices.

    Determinants and inverses are computed from the bands. A dense triangle is computed only if a
    method requires it.

    :param stencils: The stencil of each matrix, in float64.
    :param dtype: The type of the entries.
    """

    def __init__(self, stencils: Sequence[tf.Tensor], dtype: tf.DType) -> None:
        Root.__init__(self, int(np.prod([len_of(part) for part in stencils])), dtype)
        self._stencils = stencils

    @functools.cached_property
    def _triangle(self) -> tf.Tensor:
        triangles = [tf.linalg.cholesky(dense_of(stencil)) for stencil in self._stencils]
        return tf.cast(_kronecker(triangles).to_dense(), self.dtype)

    def log_determinant(self) -> tf.Tensor:
        return tf.cast(_log_determinant(self._stencils) / 2, self.dtype)

    def inverse_diagonal(self) -> tf.Tensor:
        return tf.cast(_diagonal(self._inverses), self.dtype)

    def inverse_band(self) -> tf.Tensor:
        """The entries of the inverse within the stencil of the matrix; in float64."""
        return _product(self._inverses)

    @functools.cached_property
    def _inverses(self) -> list[tf.Tensor]:
        return [inverse_and_log_determinant(part)[0] for part in self._stencils]


def len_of(stencil: tf.Tensor) -> int:
    """The length of the first axis."""
    return int(stencil.shape[0])


def _product(stencils: Sequence[tf.Tensor]) -> tf.Tensor:
    """The stencil of a Kronecker product."""
    product = functools.reduce(lambda a, b: tf.tensordot(a, b, axes=0), stencils)
    rank = 2 * len(stencils)
    return tf.transpose(product, [*range(0, rank, 2), *range(1, rank, 2)])


def _diagonal(stencils: Sequence[tf.Tensor]) -> tf.Tensor:
    """The diagonal of a Kronecker product."""
    diagonals = [part[:, part.shape[1] // 2] for part in stencils]
    return functools.reduce(lambda a, b: tf.reshape(a[:, None] * b, [-1]), diagonals)


def _log_determinant(stencils: Sequence[tf.Tensor]) -> tf.Tensor:
    """The log determinant of a Kronecker product."""
    size = np.prod([len_of(part) for part in stencils])
    return tf.add_n([size / len_of(part) * _log_determinant_of(part) for part in stencils])


def _kronecker(matrices: Sequence[tf.Tensor]) -> tf.linalg.LinearOperator:
    factors = [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in matrices]
    return tf.linalg.LinearOperatorKronecker(factors)


def dense_of(stencil: tf.Tensor) -> tf.Tensor:
    """The dense matrix of a stencil, ``[M, M]``."""
    reach, bands = stencil.shape[1] // 2, tf.transpose(stencil)
    return tf.linalg.diag(
        # The highest diagonal comes first; entry m of a diagonal is in row m.
        tf.reverse(bands, [0]),
        k=(-reach, reach),
        num_rows=len_of(stencil),
        align="LEFT_RIGHT",
    )


def inverse_and_log_determinant(stencil: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The entries of the inverse of a banded matrix within the matrix's stencil, and the log
    determinant of the matrix."""
    size, width = map(int, stencil.shape)
    block = max(_BLOCK, width // 2)
    count = 2 ** max(int(np.ceil(np.log2(size / block))), 0)
    places = _places(size, width // 2, block, count)
    padded = tf.concat([tf.reshape(stencil, [-1]), tf.constant([0.0, 1.0], stencil.dtype)], axis=0)
    diagonal, below = (tf.gather(padded, part) for part in places)
    diagonal, below, log = _reduced(diagonal, below)
    row, step = np.indices([size, width])
    other = row + step - width // 2
    first, second = np.maximum(row, other), np.minimum(row, other)  # of the lower triangle
    is_within, is_known = first // block == second // block, (other >= 0) & (other < size)
    numbers = (second // block * block + first % block) * block + second % block
    numbers = np.where(is_known, numbers + np.where(is_within, 0, count * block**2), 0)
    values = tf.gather(tf.reshape(tf.stack([diagonal, below]), [-1]), numbers)
    return tf.where(is_known, values, tf.zeros([], values.dtype)), log


@tf.custom_gradient
def _log_determinant_of(stencil: tf.Tensor) -> Any:
    """``log det K``, whose gradient is the inverse; both are computed together."""
    inverse, log = inverse_and_log_determinant(stencil)
    return log, lambda upstream: upstream * inverse


@functools.lru_cache(maxsize=8)
def _places(size: int, reach: int, block: int, count: int) -> tuple[IntArray, IntArray]:
    """The places of the blocks' entries in a flat stencil that a zero and a one follow,
    ``[count, block, block]`` each: for blocks on the diagonal, and for blocks below it. Rows after
    the last row of the matrix are rows of the identity."""
    columns = np.arange(count * block).reshape(count, 1, block)
    rows, width, places = np.swapaxes(columns, 1, 2), 2 * reach + 1, []
    for those in (rows, rows + block):
        step = columns - those + reach
        is_known = (step >= 0) & (step < width) & (those < size) & (columns < size)
        otherwise = size * width + (those == columns)
        places.append(np.where(is_known, those * width + step, otherwise))
    return places[0], places[1]


def _reduced(diagonal: tf.Tensor, below: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The blocks of the inverse of a block-tridiagonal matrix, and its log determinant.

    :param diagonal: The blocks on the diagonal, ``[2^k, b, b]``.
    :param below: The block below each block of the diagonal, ``[2^k, b, b]``; the last is zero.
    """
    # Odd blocks are eliminated now, and even blocks are kept; the blocks below connect them.
    gone, kept = diagonal[1::2], diagonal[::2]
    to_gone, to_kept = below[::2], below[1::2]
    triangles = tf.linalg.cholesky(gone if len_of(diagonal) > 1 else diagonal)
    log = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(triangles)))
    identity = tf.eye(int(below.shape[-1]), batch_shape=[len_of(triangles)], dtype=below.dtype)
    inverses = tf.linalg.cholesky_solve(triangles, identity)
    if len_of(diagonal) == 1:
        return inverses, below, log
    before, after = inverses @ to_gone, inverses @ tf.linalg.matrix_transpose(to_kept)
    kept -= tf.linalg.matmul(to_gone, before, transpose_a=True)
    kept -= _moved(to_kept @ after, 1)
    kept_inverse, between, rest = _reduced(kept, -to_kept @ before)
    next_kept = _moved(kept_inverse, -1)
    with_last = -(before @ kept_inverse + after @ between)
    with_next = -(tf.linalg.matmul(before, between, transpose_b=True) + after @ next_kept)
    gone_inverse = inverses - tf.linalg.matmul(with_last, before, transpose_b=True)
    gone_inverse -= tf.linalg.matmul(with_next, after, transpose_b=True)
    shape = tf.shape(diagonal)
    alternating = tf.reshape(tf.stack([kept_inverse, gone_inverse], axis=1), shape)
    connecting = tf.stack([with_last, tf.linalg.matrix_transpose(with_next)], axis=1)
    return alternating, tf.reshape(connecting, shape), log + rest


def _moved(blocks: tf.Tensor, number: int) -> tf.Tensor:
    """The blocks one place later (1) or earlier (-1), with zeros in the empty place."""
    if number > 0:
        return tf.concat([tf.zeros_like(blocks[:1]), blocks[:-1]], axis=0)
    return tf.concat([blocks[1:], tf.zeros_like(blocks[:1])], axis=0)
