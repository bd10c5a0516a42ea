"""The interface of covariance matrices with structure, and of their Cholesky factors.

A structure is one file: a class of operators with the methods below, and one of roots.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf


class StructuredOperator(tf.linalg.LinearOperator, metaclass=abc.ABCMeta):  # type: ignore[misc]
    """A positive-definite matrix ``[M, M]``, or a batch of them, whose Cholesky factor has a
    structure that computations keep."""

    @abc.abstractmethod
    def root(self) -> Root:
        """The Cholesky factor."""

    @abc.abstractmethod
    def stacked_with(self, *others: Any) -> StructuredOperator:
        """With others of its class, all ``[M, M]``, as one batch ``[T, M, M]``."""

    @abc.abstractmethod
    def cast(self, dtype: tf.DType) -> StructuredOperator:
        """The operator in another float type."""

    def whiten(self, columns: tf.Tensor) -> tf.Tensor:
        """``L^{-1} columns``, for the Cholesky factor L.

        Use it where L itself is not needed: some operators have a cheaper gradient for it.
        """
        return self.root().solve(columns)

    @property
    def sole_diagonal(self) -> tf.Tensor | None:
        """The diagonal ``[..., M]`` of an operator that has nothing else; None for any other."""
        return None


Tensors: TypeAlias = tuple[tf.Tensor, ...]

Inverse: TypeAlias = Callable[..., tf.Tensor]
"""How to multiply by ``L^{-1}``, given tensors that are stored apart: see :meth:`Root.inverse`."""


def last_axis(tensor: tf.Tensor) -> int | tf.Tensor:
    """The size of the last axis; a tensor if it is not known before."""
    size = tensor.shape[-1]
    return tf.shape(tensor)[-1] if size is None else size


class Root(abc.ABC):
    """The Cholesky factor L of a matrix ``K = L L^T``, or those of a batch, ``[..., M, M]``.

    L is lower triangular with a positive diagonal. There is only one such matrix, so the whitened
    variables ``L^{-1} u`` do not depend on how L is computed. Subclasses compute with L without
    forming it as a matrix.

    :param size: The number M of rows of L.
    :param dtype: The type of its entries.
    """

    def __init__(self, size: int | tf.Tensor, dtype: tf.DType) -> None:
        self.size, self.dtype = size, dtype

    @abc.abstractmethod
    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """``L^{-1} columns``, or ``L^{-T} columns``, for columns ``[..., M, N]``."""

    @abc.abstractmethod
    def log_determinant(self) -> tf.Tensor:
        """``log det L``, ``[...]``, which is half of ``log det K``."""

    @abc.abstractmethod
    def inverse(self) -> tuple[Inverse, Tensors]:
        """``L^{-1}``, as a function of tensors and columns and these tensors, all with the leading
        axes of L: ``inverse(tensors, columns, adjoint=False)`` is :meth:`solve`. M is the last axis
        of the first tensor. A cached posterior keeps both, so that the function must be one that
        can be copied and pickled."""

    def inverse_diagonal(self) -> tf.Tensor:
        """The diagonal of ``K^{-1}``, ``[..., M]``."""
        return tf.reduce_sum(tf.square(self.solve(tf.eye(self.size, dtype=self.dtype))), axis=-2)

    @property
    def diagonal(self) -> tf.Tensor | None:
        """The diagonal of L, ``[..., M]``, if L is diagonal; None otherwise."""
        return None

    @property
    def triangle(self) -> tf.Tensor | None:
        """L as a dense matrix, if that is how it is stored; None otherwise."""
        return None
