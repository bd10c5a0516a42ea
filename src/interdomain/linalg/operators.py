"""Functions that each kind of operator registers for itself, in its own file.

They dispatch on the operator's class. A class that is not registered raises a TypeError, so that no
operator is mistaken for another kind. To register a class:

    @square_root.register(MyOperator)
    def my_square_root(operator: MyOperator) -> Root: ...

A class registers ``square_root``, ``stack_alike`` (models compute with batches, often of one) and
``cast``; the others have defaults.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import NoReturn

import tensorflow as tf

from .roots import Root


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
