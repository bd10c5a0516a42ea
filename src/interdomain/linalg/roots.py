"""The interface of the Cholesky factor of a covariance matrix, whatever its structure."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf

Tensors: TypeAlias = tuple[tf.Tensor, ...]


def last_axis(tensor: tf.Tensor) -> int | tf.Tensor:
    """The size of the last axis; a tensor if it is not known before."""
    size = tensor.shape[-1]
    return tf.shape(tensor)[-1] if size is None else size


class Inverse(abc.ABC):
    """How to multiply by ``L^{-1}``, given tensors that are stored apart from it.

    A cached posterior keeps the tensors and this object, which holds no numbers and can be copied
    and pickled.

    :ivar num_tensors: The number of tensors.
    """

    num_tensors: int

    def size(self, tensors: Sequence[tf.Tensor]) -> int | tf.Tensor:
        """The number M of rows of L: by default the last axis of the first tensor."""
        return last_axis(tensors[0])

    @abc.abstractmethod
    def apply(
        self, tensors: Sequence[tf.Tensor], columns: tf.Tensor, *, adjoint: bool = False
    ) -> tf.Tensor:
        """``L^{-1} columns``, or ``L^{-T} columns``, for columns ``[..., M, N]``."""


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
    def matmul(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """``L columns``, or ``L^T columns``, for columns ``[..., M, N]``."""

    @abc.abstractmethod
    def log_determinant(self) -> tf.Tensor:
        """``log det L``, ``[...]``, which is half of ``log det K``."""

    @abc.abstractmethod
    def inverse(self) -> tuple[Inverse, Tensors]:
        """``L^{-1}`` as an :class:`Inverse` and its tensors, all with the leading axes of L."""

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

    def to_dense(self) -> tf.Tensor:
        """L as a dense matrix."""
        return self.matmul(tf.eye(self.size, dtype=self.dtype))
