"""Covariances of sums: every summand brings its own block."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.kernels import Sum

from ..inducing_variables import SumInducingVariables
from ..kernels import DecomposedKernel
from ..linalg import block_diagonal
from .columns import with_input_columns
from .dispatch import Kuf_shapes, Kuu_operator, Kuu_shapes
from .pairs import pair_blocks


@Kuf.register(SumInducingVariables, (Sum, DecomposedKernel), object)
@Kuf_shapes
def Kuf_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel, Xnew: TensorType
) -> tf.Tensor:
    """The blocks' covariances, one below the other."""
    Xnew = with_input_columns(inducing_variable, kernel, Xnew)
    blocks = pair_blocks(inducing_variable, kernel)
    return tf.concat([Kuf(block, summand, Xnew) for block, summand in blocks], axis=0)


@Kuu.register(SumInducingVariables, (Sum, DecomposedKernel))
@Kuu_shapes
def Kuu_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel, *, jitter: float = 0.0
) -> tf.Tensor:
    """The dense block-diagonal matrix."""
    blocks = pair_blocks(inducing_variable, kernel)
    matrices = [Kuu(block, summand, jitter=jitter) for block, summand in blocks]
    return tf.linalg.LinearOperatorBlockDiag(
        [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in matrices]
    ).to_dense()


@Kuu_operator.register(SumInducingVariables, (Sum, DecomposedKernel))
def Kuu_operator_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel, *, jitter: float = 0.0
) -> tf.linalg.LinearOperator:
    """The blocks' own operators; ``jitter`` reaches the blocks that have to be factorised."""
    blocks = pair_blocks(inducing_variable, kernel)
    return block_diagonal(
        [Kuu_operator(block, summand, jitter=jitter) for block, summand in blocks]
    )
