"""The functions that each kind of operator registers, in its own file, and the interface of roots.

They dispatch on the operator's class. A class that is not registered raises a TypeError, so that no
operator is mistaken for another kind. To register a class:

    @square_root.register(MyOperator)
    def my_square_root(operator: MyOperator) -> Root: ...

A class registers ``square_root``, ``stack_alike`` (models compute with batches, often of one) and
``cast``; the others have defaults.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import NoReturn, TypeAlias

import tensorflow as tf


def _raise_unregistered(function: str, operator: object) -> NoReturn:
    raise TypeError(
        f"operator must be of a class that is registered, found {type(operator).__name__}; "
        f"register a function with interdomain.linalg.{function}.register, or pass "
        "interdomain.linalg.full_operator(matrix)."
    )


@singledispatch
def square_root(operator: tf.linalg.LinearOperator) -> Root:
    """The Cholesky factor of a positive-definite operator ``[..., M, M]``, in its structure.

    :raises TypeError: If the operator's class is not registered.
    """
    _raise_unregistered("square_root", operator)


@singledispatch
def whiten(operator: tf.linalg.LinearOperator, columns: tf.Tensor) -> tf.Tensor:
    """``L^{-1} columns``, for the Cholesky factor L of the operator.

    Use it where L itself is not needed: some operators have a cheaper gradient for it.
    """
    return square_root(operator).solve(columns)


@singledispatch
def stack_alike(
    operator: tf.linalg.LinearOperator, *others: tf.linalg.LinearOperator
) -> tf.linalg.LinearOperator:
    """Operators ``[M, M]`` of one class as one batch ``[T, M, M]``; see :func:`stack`.

    :raises TypeError: If the operator's class is not registered.
    """
    _raise_unregistered("stack_alike", operator)


def stack(operators: Sequence[tf.linalg.LinearOperator]) -> tf.linalg.LinearOperator:
    """Operators ``[M, M]`` as one batch ``[T, M, M]``; as dense matrices if classes differ.

    :raises TypeError: If an operator's class is not registered.
    """
    first, *others = operators
    if all(type(other) is type(first) for other in others):
        return stack_alike(first, *others)
    return stack_dense(operators)


def stack_dense(operators: Sequence[tf.linalg.LinearOperator]) -> tf.linalg.LinearOperator:
    """Operators ``[M, M]`` as a batch of dense matrices ``[T, M, M]``.

    :raises TypeError: If an operator's class is not registered.
    """
    for operator in operators:
        if stack_alike.dispatch(type(operator)) is stack_alike.dispatch(object):
            _raise_unregistered("stack_alike", operator)
    matrices = tf.stack([operator.to_dense() for operator in operators])
    return tf.linalg.LinearOperatorFullMatrix(
        matrices, is_self_adjoint=True, is_positive_definite=True
    )


@singledispatch
def cast(operator: tf.linalg.LinearOperator, dtype: tf.DType) -> tf.linalg.LinearOperator:
    """The operator in another float type.

    :raises TypeError: If the operator's class is not registered.
    """
    _raise_unregistered("cast", operator)


# The interface of the Cholesky factor of a covariance matrix, whatever its structure.

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
    def matmul(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        """``L columns``, or ``L^T columns``, for columns ``[..., M, N]``."""

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

    def to_dense(self) -> tf.Tensor:
        """L as a dense matrix."""
        return self.matmul(tf.eye(self.size, dtype=self.dtype))
