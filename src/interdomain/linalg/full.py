"""Dense operators: Kuu of inducing points, and matrices without structure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from .operators import Inverse, Root, StructuredOperator, Summable, Tensors, last_axis


class Full(StructuredOperator, tf.linalg.LinearOperatorFullMatrix, Summable):  # type: ignore[misc]
    """A positive-definite matrix ``[..., M, M]``, or a batch of matrices, without structure.

    :param matrix: ``[..., M, M]``.
    """

    def __init__(self, matrix: tf.Tensor) -> None:
        super().__init__(matrix, is_self_adjoint=True, is_positive_definite=True)

    @property
    def parts(self) -> Tensors:
        return (self.to_dense(),)

    def with_parts(self, matrix: tf.Tensor) -> Full:
        return Full(matrix)

    def root(self) -> FullRoot:
        return FullRoot(_cholesky(self.to_dense()))

    def stacked_with(self, *others: Full) -> Full:
        return Full(tf.stack([operator.to_dense() for operator in (self, *others)]))

    def cast(self, dtype: tf.DType) -> Full:
        return Full(tf.cast(self.to_dense(), dtype))

    def whiten(self, columns: tf.Tensor) -> tf.Tensor:
        """``L^{-1} columns``, with one gradient for both steps.

        The gradient with respect to L is ``-L^{-T} dA A^T``. The gradient of the factorisation
        multiplies it by L^T, which cancels the ``L^{-T}``: neither product is computed.
        """
        return _solve_with_factor(self.to_dense(), columns)


def stack(operators: Sequence[StructuredOperator]) -> StructuredOperator:
    """One batch ``[T, M, M]`` of operators ``[M, M]``; a dense batch if their classes differ."""
    first, *others = operators
    if all(type(other) is type(first) for other in others):
        return first.stacked_with(*others)
    return Full(tf.stack([operator.to_dense() for operator in operators]))


class FullRoot(Root):
    """A dense Cholesky factor L.

    :param triangle: L ``[..., M, M]``, zero above the diagonal.
    """

    def __init__(self, triangle: tf.Tensor) -> None:
        super().__init__(last_axis(triangle), triangle.dtype)
        self._triangle = triangle

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        return tf.linalg.triangular_solve(self._triangle, columns, adjoint=adjoint)

    def log_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(self._triangle)), axis=-1)

    def inverse(self) -> tuple[Inverse, Tensors]:
        identity = tf.eye(self.size, dtype=self.dtype)
        return _product, (self.solve(tf.broadcast_to(identity, tf.shape(self._triangle))),)

    @property
    def triangle(self) -> tf.Tensor:
        return self._triangle


def _product(tensors: Tensors, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
    """The product with the dense inverse, which is faster than a triangular solve."""
    return matmul(tensors[0], columns, transpose_a=adjoint)


@tf.custom_gradient
def _solve_with_factor(matrix: tf.Tensor, columns: tf.Tensor) -> Any:
    root = tf.linalg.cholesky(matrix)
    A = tf.linalg.triangular_solve(root, columns)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        product = -matmul(upstream, A, transpose_b=True)
        d_columns = tf.linalg.triangular_solve(root, upstream, adjoint=True)
        return _cholesky_gradient(root, product), d_columns

    return A, gradient


@tf.custom_gradient
def _cholesky(matrix: tf.Tensor) -> Any:
    """The Cholesky factor of one matrix or a batch, with a gradient by triangular solves.

    TensorFlow's gradient inverts the factor and computes two more products. Both gradients follow
    Murray 2016, "Differentiation of the Cholesky decomposition", eq. 10.
    """
    root = tf.linalg.cholesky(matrix)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return _cholesky_gradient(root, matmul(root, upstream, transpose_a=True))

    return root, gradient


def _cholesky_gradient(root: tf.Tensor, product: tf.Tensor) -> tf.Tensor:
    """The gradient with respect to ``L L^T``, from the product of L^T and the gradient with respect
    to L. Entries of the product above the diagonal are not used."""
    middle = tf.linalg.band_part(product, -1, 0)
    middle += tf.linalg.matrix_transpose(tf.linalg.band_part(middle, -1, 0))
    middle = tf.linalg.set_diag(middle, tf.linalg.diag_part(middle) / 2)
    half = tf.linalg.triangular_solve(root, middle, adjoint=True)
    solved = tf.linalg.triangular_solve(root, tf.linalg.matrix_transpose(half), adjoint=True)
    return (solved + tf.linalg.matrix_transpose(solved)) / 4


def matmul(
    a: tf.Tensor, b: tf.Tensor, *, transpose_a: bool = False, transpose_b: bool = False
) -> tf.Tensor:
    """The product of ``tf.matmul``; a batch of one is multiplied as plain matrices, which is
    faster."""
    leading = a.shape[:-2]
    if leading.rank and leading == b.shape[:-2] and leading.num_elements() == 1:
        index = (0,) * leading.rank
        product = tf.matmul(a[index], b[index], transpose_a=transpose_a, transpose_b=transpose_b)
        return product[(None,) * leading.rank]
    return tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@tf.custom_gradient
def gram(matrix: tf.Tensor) -> Any:
    """The product ``B^T B``; its gradient takes one product, and TensorFlow's takes two."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return matmul(matrix, upstream + tf.linalg.matrix_transpose(upstream))

    return matmul(matrix, matrix, transpose_a=True), gradient
