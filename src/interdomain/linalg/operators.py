"""The interface of symmetric matrices with structure, and of their factors.

A structure is one file: a class of matrices and a class of factors. A covariance of inducing
variables is a :class:`StructuredOperator` with a :class:`Root`: tensors with gradients. A sum over
rows, or a precision computed from it, is a :class:`Summable`. It can be added, has the methods of
an operator, and has a :class:`Factor`, which may consist of sparse arrays.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

if TYPE_CHECKING:
    from typing_extensions import Self


class StructuredOperator(tf.linalg.LinearOperator, metaclass=abc.ABCMeta):  # type: ignore[misc]
    """A positive-definite matrix ``[M, M]``, or a batch, whose Cholesky factor has a structure."""

    @abc.abstractmethod
    def root(self) -> Root:
        """The Cholesky factor L of the matrix ``L L^T``, or of each matrix of a batch."""

    @abc.abstractmethod
    def stacked_with(self, *others: Any) -> StructuredOperator:
        """One batch ``[T, M, M]`` of this operator and others of its class, all ``[M, M]``."""

    @abc.abstractmethod
    def cast(self, dtype: tf.DType) -> StructuredOperator:
        """The operator in another float type."""

    def whiten(self, columns: tf.Tensor) -> tf.Tensor:
        """``L^{-1} columns``, for the Cholesky factor L.

        Use this method if L itself is not needed: some operators have a cheaper gradient for it.
        """
        return self.root().solve(columns)

    @property
    def sole_diagonal(self) -> tf.Tensor | None:
        """The diagonal ``[..., M]`` if all other entries are structurally zero; None otherwise."""
        return None


class Summable(abc.ABC):
    """A symmetric matrix that is a linear function of a few tensors or arrays of numbers.

    The matrices of batches of rows add up to the matrix of all rows, with the same structure.
    """

    @property
    @abc.abstractmethod
    def parts(self) -> Tensors:
        """The tensors or arrays of numbers that define the matrix."""

    @abc.abstractmethod
    def with_parts(self, *parts: Any) -> Self:
        """The matrix of the same structure and size with other :attr:`parts`."""

    @abc.abstractmethod
    def matmul(self, columns: Any) -> Any:
        """The product of the matrix with columns ``[M, K]``."""

    @abc.abstractmethod
    def to_dense(self) -> Any:
        """The dense matrix, ``[M, M]``."""

    @abc.abstractmethod
    def diag_part(self) -> Any:
        """The diagonal, ``[M]``."""

    @abc.abstractmethod
    def root(self) -> Factor:
        """The factor of the matrix.

        :raises tf.errors.InvalidArgumentError: If the matrix is not positive definite.
        """

    def __add__(self, other: Self) -> Self:
        pairs = zip(self.parts, other.parts, strict=True)
        return self.with_parts(*(some + others for some, others in pairs))

    def __mul__(self, factor: Any) -> Self:
        return self.with_parts(*(part * factor for part in self.parts))

    def packed(self) -> npt.NDArray[Any]:
        """All numbers as one vector, a NumPy array."""
        return np.concatenate([np.ravel(part) for part in self.parts])

    def unpacked(self, numbers: Any) -> Self:
        """The matrix of the same structure and size with the numbers of a vector, an array or a
        tensor. :meth:`packed` returns such vectors, and they can be added."""
        reshape = tf.reshape if tf.is_tensor(numbers) else np.reshape
        parts, start = [], 0
        for part in self.parts:
            size = int(np.prod(part.shape))
            parts.append(reshape(numbers[start : start + size], part.shape))
            start += size
        return self.with_parts(*parts)


Tensors: TypeAlias = tuple[tf.Tensor, ...]

Inverse: TypeAlias = Callable[..., tf.Tensor]
"""A function of tensors and columns that multiplies by ``L^{-1}``: see :meth:`Root.inverse`."""


def last_axis(tensor: tf.Tensor) -> int | tf.Tensor:
    """The size of the last axis; a tensor if the static shape has no size."""
    size = tensor.shape[-1]
    return tf.shape(tensor)[-1] if size is None else size


class Factor(abc.ABC):
    """A factor L of a positive-definite matrix ``K = L L^T``; L need not be stored as a matrix.

    :ivar size: The number M of rows of L.
    """

    size: int | tf.Tensor

    @abc.abstractmethod
    def solve(self, columns: Any, *, adjoint: bool = False) -> Any:
        """``L^{-1} columns``, or ``L^{-T} columns``, for columns ``[..., M, N]``."""

    @abc.abstractmethod
    def log_determinant(self) -> Any:
        """``log det L``, ``[...]``, which is half of ``log det K``."""

    @abc.abstractmethod
    def inverse_diagonal(self) -> Any:
        """The diagonal of ``K^{-1}``, ``[..., M]``."""


class Root(Factor):
    """The Cholesky factor L of a matrix, or the factors of a batch, ``[..., M, M]``.

    L is lower triangular with a positive diagonal. There is only one such matrix, so the whitened
    variables ``L^{-1} u`` do not depend on how L is computed.

    :param size: The number M of rows of L.
    :param dtype: The type of its entries.
    """

    def __init__(self, size: int | tf.Tensor, dtype: tf.DType) -> None:
        self.size, self.dtype = size, dtype

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        inverse, tensors = self.inverse()
        return inverse(tensors, columns, adjoint=adjoint)

    @abc.abstractmethod
    def inverse(self) -> tuple[Inverse, Tensors]:
        """A function that multiplies by ``L^{-1}``, and the tensors that it needs, all with the
        leading axes of L. ``inverse(tensors, columns, adjoint=False)`` is :meth:`solve`. M is the
        last axis of the first tensor. A cached posterior keeps both, so it must be possible to copy
        and pickle the function."""

    def inverse_diagonal(self) -> tf.Tensor:
        return tf.reduce_sum(tf.square(self.solve(tf.eye(self.size, dtype=self.dtype))), axis=-2)

    @property
    def diagonal(self) -> tf.Tensor | None:
        """The diagonal of L, ``[..., M]``, if L is diagonal; None otherwise."""
        return None

    @property
    def triangle(self) -> tf.Tensor | None:
        """L as a dense matrix, if it is stored as one; None otherwise."""
        return None
