"""Covariances of sums: every summand brings its own block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from ..inducing_variables import SumInducingVariables
from .dispatch import Kuu_operator


def _blocks(
    inducing_variable: SumInducingVariables, kernel: Sum
) -> Iterator[tuple[InducingVariables, Kernel]]:
    """Each block with its summand.

    :raises ValueError: If there are not as many blocks as summands.
    """
    blocks, kernels = inducing_variable.inducing_variables, kernel.kernels
    if len(blocks) != len(kernels):
        raise ValueError(
            f"inducing_variables has {len(blocks)} blocks, but the kernel is a sum of "
            f"{len(kernels)} (gpflow flattens sums of sums); pass one block per summand."
        )
    return zip(blocks, kernels, strict=True)


def block_diagonal(operators: Sequence[tf.linalg.LinearOperator]) -> tf.linalg.LinearOperator:
    """The block-diagonal operator; a diagonal one if all blocks are diagonal."""
    if all(isinstance(operator, tf.linalg.LinearOperatorDiag) for operator in operators):
        diagonal = tf.concat([operator.diag_part() for operator in operators], axis=0)
        return tf.linalg.LinearOperatorDiag(
            diagonal, is_self_adjoint=True, is_positive_definite=True
        )
    return tf.linalg.LinearOperatorBlockDiag(
        operators, is_self_adjoint=True, is_positive_definite=True
    )


@Kuf.register(SumInducingVariables, Sum, object)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "Xnew: [batch..., N, E]",
    "return: [M, batch..., N]",
)
def Kuf_sum(inducing_variable: SumInducingVariables, kernel: Sum, Xnew: TensorType) -> tf.Tensor:
    """The blocks' covariances, one below the other."""
    blocks = _blocks(inducing_variable, kernel)
    return tf.concat([Kuf(block, summand, Xnew) for block, summand in blocks], axis=0)


@Kuu.register(SumInducingVariables, Sum)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M, M]",
)
def Kuu_sum(
    inducing_variable: SumInducingVariables, kernel: Sum, *, jitter: float = 0.0
) -> tf.Tensor:
    """The dense block-diagonal matrix."""
    blocks = _blocks(inducing_variable, kernel)
    matrices = [Kuu(block, summand, jitter=jitter) for block, summand in blocks]
    return tf.linalg.LinearOperatorBlockDiag(
        [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in matrices]
    ).to_dense()


@Kuu_operator.register(SumInducingVariables, Sum)
def Kuu_operator_sum(
    inducing_variable: SumInducingVariables, kernel: Sum, *, jitter: float = 0.0
) -> tf.linalg.LinearOperator:
    """The blocks' own operators; ``jitter`` reaches the blocks that have to be factorised."""
    blocks = _blocks(inducing_variable, kernel)
    return block_diagonal(
        [Kuu_operator(block, summand, jitter=jitter) for block, summand in blocks]
    )
