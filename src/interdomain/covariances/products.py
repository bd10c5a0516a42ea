"""Covariances of sums and of products of inducing variables."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Product, Sum

from ..inducing_variables import ProductInducingVariables, SumInducingVariables
from ..inducing_variables._harmonic_growth import least_eigenvalue
from ..inducing_variables.products import feature_variances
from ..kernels import DecomposedKernel
from ..kernels._diagonals import DiagonalTerm, product_terms
from ..kernels.finite_rank import explained_covariance, explained_terms
from ..linalg import block_diagonal, diagonal_operator, full_operator
from ..linalg.diagonal import sole_diagonal
from .blocks import Block, pair_blocks
from .columns import num_columns_of_any, num_input_columns, with_input_columns
from .dispatch import Kuf_shapes, Kuu_operator, Kuu_shapes
from .domains import Kuf_in_domain, boxed_parts
from .finite_rank import explained_covariance_by_features


@num_input_columns.register(ProductInducingVariables, Product)
def num_input_columns_product(
    inducing_variable: ProductInducingVariables, kernel: Product
) -> int | None:
    """One factor that knows it is enough."""
    return num_columns_of_any(inducing_variable.pairs(kernel))


@boxed_parts.register(ProductInducingVariables, Product)
def boxed_parts_product(
    inducing_variable: ProductInducingVariables, kernel: Product
) -> list[Block]:
    """Those of the factors: a row is outside where it is outside for one of them."""
    pairs = inducing_variable.pairs(kernel)
    return [part for pair in pairs for part in boxed_parts(*pair)]


@Kuf.register(ProductInducingVariables, Product, object)
@Kuf_shapes
def Kuf_product(
    inducing_variable: ProductInducingVariables, kernel: Product, Xnew: TensorType
) -> tf.Tensor:
    """The products of the factors' covariances, each of which is computed once."""
    Xnew = with_input_columns(inducing_variable, kernel, Xnew)
    return _products(
        inducing_variable, [Kuf(*pair, Xnew) for pair in inducing_variable.pairs(kernel)]
    )


@Kuf_in_domain.register(ProductInducingVariables, Product, object)
def Kuf_in_domain_product(
    inducing_variable: ProductInducingVariables, kernel: Product, X: TensorType
) -> tf.Tensor:
    """The same, of what the factors' features are in their domains."""
    X = with_input_columns(inducing_variable, kernel, X)
    return _products(
        inducing_variable, [Kuf_in_domain(*pair, X) for pair in inducing_variable.pairs(kernel)]
    )


def _products(
    inducing_variable: ProductInducingVariables, features: Sequence[tf.Tensor]
) -> tf.Tensor:
    """The products ``[M, ...]`` of what belongs to the features of each factor, ``[M_i, ...]``."""
    if inducing_variable.has_all:
        return reduce(_all_products, features)
    columns = inducing_variable.members.T
    rows = [tf.gather(own, column) for own, column in zip(features, columns, strict=True)]
    return reduce(operator.mul, rows)


def _all_products(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    shape = tf.concat([[_size(first) * _size(second)], tf.shape(second)[1:]], axis=0)
    return tf.reshape(first[:, None] * second[None], shape)


def _kronecker(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    size = _size(first) * _size(second)
    return tf.reshape(first[:, None, :, None] * second[None, :, None, :], [size, size])


def _size(tensor: tf.Tensor) -> int | tf.Tensor:
    size = tensor.shape[0]
    return tf.shape(tensor)[0] if size is None else size


@Kuu_operator.register(ProductInducingVariables, Product)
def Kuu_operator_product(
    inducing_variable: ProductInducingVariables, kernel: Product, *, jitter: float = 0.0
) -> tf.linalg.LinearOperator:
    """A diagonal, if those of all factors are, to which ``jitter`` is not added. Otherwise a dense
    matrix, to which it is, times the diagonal: the scale of u is a product of arbitrary ones.

    A prior variance that underflows leaves a feature of no effect, not NaN.
    """
    operators = [Kuu_operator(*pair) for pair in inducing_variable.pairs(kernel)]
    diagonals = [own for one in operators if (own := sole_diagonal(one)) is not None]
    if len(diagonals) == len(operators):
        variances = _products(inducing_variable, [1 / diagonal for diagonal in diagonals])
        return diagonal_operator(1 / tf.maximum(variances, least_eigenvalue(variances.dtype)))
    matrices = [one.to_dense() for one in operators]
    if inducing_variable.has_all:
        matrix = reduce(_kronecker, matrices)
    else:
        pairs = zip(matrices, inducing_variable.members.T, strict=True)
        chosen = [tf.gather(tf.gather(own, rows), rows, axis=1) for own, rows in pairs]
        matrix = reduce(operator.mul, chosen)
    return full_operator(_with_relative_jitter(matrix, jitter))


def _with_relative_jitter(matrix: tf.Tensor, jitter: float) -> tf.Tensor:
    return tf.linalg.set_diag(matrix, tf.linalg.diag_part(matrix) * (1 + jitter))


@Kuu.register(ProductInducingVariables, Product)
@Kuu_shapes
def Kuu_product(
    inducing_variable: ProductInducingVariables, kernel: Product, *, jitter: float = 0.0
) -> tf.Tensor:
    """The dense matrix; ``jitter`` is added times the diagonal."""
    return _with_relative_jitter(Kuu_operator(inducing_variable, kernel).to_dense(), jitter)


@feature_variances.register(InducingVariables, Kernel)
def feature_variances_by_operator(
    inducing_variable: InducingVariables, kernel: Kernel
) -> tf.Tensor | None:
    """The inverse of the operator's diagonal, if it is nothing else."""
    diagonal = sole_diagonal(Kuu_operator(inducing_variable, kernel))
    return None if diagonal is None else 1 / diagonal


def _is_product_of_parts(inducing_variable: ProductInducingVariables, kernel: Product) -> bool:
    """Whether what the products explain is the product of what the factors' features explain, to
    the last digit: jitter would be another."""
    return inducing_variable.has_all and all(
        feature_variances(*pair) is not None for pair in inducing_variable.pairs(kernel)
    )


@explained_covariance.register(ProductInducingVariables, Product, object, object)
def explained_covariance_product(
    inducing_variable: ProductInducingVariables,
    kernel: Product,
    X: TensorType,
    X2: TensorType | None,
) -> tf.Tensor:
    """Of all products the product of what the factors' features explain."""
    if not _is_product_of_parts(inducing_variable, kernel):
        return explained_covariance_by_features(inducing_variable, kernel, X, X2)
    pairs = inducing_variable.pairs(kernel)
    return reduce(operator.mul, [explained_covariance(*pair, X, X2) for pair in pairs])


@explained_terms.register(ProductInducingVariables, Product)
def explained_terms_product(
    inducing_variable: ProductInducingVariables, kernel: Product
) -> list[DiagonalTerm] | None:
    """The products of the factors' terms, if all know theirs."""
    if not _is_product_of_parts(inducing_variable, kernel):
        return None
    terms = [explained_terms(*pair) for pair in inducing_variable.pairs(kernel)]
    return None if None in terms else product_terms(terms)


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
