"""Algebra of q(u) = N(q_mu, S) against a structured prior, without GPflow's classes.

L is a square root of Kuu as a linear operator, ``Kuu = L L^T``. Everything is done in terms of the
whitened variables ``v = L^{-1} u``, whose prior is N(0, I), and of the whitened features
``A = L^{-1} Kuf``:

    mean = A^T E[v],    var = kff - |A|^2 + A^T Cov[v] A.

``q_sqrt`` is None (S = 0), ``[M, P]`` (S diagonal) or ``[P, M, M]`` (S = q_sqrt q_sqrt^T).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from .low_rank_update import LowRankUpdateRoot


def is_diagonal(operator: tf.linalg.LinearOperator) -> bool:
    """Whether the operator is known to be diagonal."""
    return isinstance(operator, tf.linalg.LinearOperatorDiag)


def square_root(operator: tf.linalg.LinearOperator) -> tf.linalg.LinearOperator:
    """L with ``operator = L L^T``: lower triangular for a full matrix, of the operator's own
    structure otherwise (block-diagonal, diagonal, diagonal times identity plus low rank)."""
    if isinstance(operator, tf.linalg.LinearOperatorFullMatrix):
        return tf.linalg.LinearOperatorLowerTriangular(_cholesky(operator.to_dense()))
    if isinstance(operator, tf.linalg.LinearOperatorBlockDiag):
        return tf.linalg.LinearOperatorBlockDiag([square_root(o) for o in operator.operators])
    if isinstance(operator, tf.linalg.LinearOperatorLowRankUpdate):
        return LowRankUpdateRoot(operator.base_operator.diag_part(), operator.u)
    return operator.cholesky()


@tf.custom_gradient
def _cholesky(matrix: tf.Tensor) -> Any:
    """The Cholesky factor, of one matrix or a batch, with a gradient by triangular solves.

    TensorFlow's gradient inverts the factor and takes two more products; both follow Murray 2016,
    "Differentiation of the Cholesky decomposition", eq. 10.
    """
    root = tf.linalg.cholesky(matrix)

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return _cholesky_gradient(root, tf.matmul(root, upstream, transpose_a=True))

    return root, gradient


def _cholesky_gradient(root: tf.Tensor, product: tf.Tensor) -> tf.Tensor:
    """The gradient to ``L L^T``, from the product of L^T and the gradient to L; what is above the
    diagonal of it does not matter."""
    middle = tf.linalg.band_part(product, -1, 0)
    middle += tf.linalg.matrix_transpose(tf.linalg.band_part(middle, -1, 0))
    middle = tf.linalg.set_diag(middle, tf.linalg.diag_part(middle) / 2)
    half = tf.linalg.triangular_solve(root, middle, adjoint=True)
    whole = tf.linalg.triangular_solve(root, tf.linalg.matrix_transpose(half), adjoint=True)
    return (whole + tf.linalg.matrix_transpose(whole)) / 4


def whitened_columns(operator: tf.linalg.LinearOperator, columns: tf.Tensor) -> tf.Tensor:
    """``L^{-1} columns``, where L itself is not needed.

    For a full matrix the two gradients, of the solution and of the factor, are one: the gradient to
    L is ``-L^{-T} dA A^T``, and that of the factorisation multiplies it by L^T. Neither the solve
    nor the product are then needed.
    """
    if isinstance(operator, tf.linalg.LinearOperatorFullMatrix):
        return _solve_with_factor(operator.to_dense(), columns)
    return square_root(operator).solve(columns)


@tf.custom_gradient
def _solve_with_factor(matrix: tf.Tensor, columns: tf.Tensor) -> Any:
    root = tf.linalg.cholesky(matrix)
    A = tf.linalg.triangular_solve(root, columns)

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        product = -tf.matmul(upstream, A, transpose_b=True)
        d_columns = tf.linalg.triangular_solve(root, upstream, adjoint=True)
        return _cholesky_gradient(root, product), d_columns

    return A, gradient


def lower_triangle(q_sqrt: TensorType | None) -> tf.Tensor | None:
    """``q_sqrt`` with what is above the diagonal of a full one left out, as GPflow does.

    It may be an array or a parameter, and is a tensor afterwards.
    """
    if q_sqrt is None:
        return None
    q_sqrt = tf.convert_to_tensor(q_sqrt)
    return q_sqrt if q_sqrt.shape.rank == 2 else tf.linalg.band_part(q_sqrt, -1, 0)


def whiten_q_sqrt(root: tf.linalg.LinearOperator, q_sqrt: tf.Tensor | None) -> tf.Tensor | None:
    """``L^{-1} q_sqrt``: ``[M, P]`` while both are diagonal, ``[P, M, M]`` otherwise."""
    if q_sqrt is None:
        return None
    if q_sqrt.shape.rank == 3:
        return root.solve(q_sqrt)
    if is_diagonal(root):
        return root.solve(q_sqrt)
    return root.solve(tf.linalg.diag(tf.linalg.matrix_transpose(q_sqrt)))


def is_triangular(root: tf.linalg.LinearOperator) -> bool:
    """Whether a result of :func:`square_root` is lower triangular."""
    if isinstance(root, tf.linalg.LinearOperatorBlockDiag):
        return all(is_triangular(block) for block in root.operators)
    return not isinstance(root, LowRankUpdateRoot)


def log_determinant_of_whitened(
    root: tf.linalg.LinearOperator, q_mu: tf.Tensor, q_sqrt: tf.Tensor
) -> tf.Tensor | None:
    """``log det(L^{-1} S L^{-T})``, summed over the latent GPs (and blocks, if there are several),
    where L is not triangular; None where the diagonal of ``L^{-1} q_sqrt`` says it."""
    if is_triangular(root):
        return None
    q_diagonal = q_sqrt if q_sqrt.shape.rank == q_mu.shape.rank else tf.linalg.diag_part(q_sqrt)
    num_latent = tf.cast(tf.shape(q_mu)[-1], q_mu.dtype)
    log_determinant = tf.reduce_sum(tf.math.log(tf.square(q_diagonal)))
    return log_determinant - 2 * num_latent * tf.reduce_sum(root.log_abs_determinant())


def inverse_diagonal(root: tf.linalg.LinearOperator) -> tf.Tensor:
    """The diagonal of ``Kuu^{-1}``, ``[M]``."""
    if is_diagonal(root):
        return 1 / tf.square(root.diag_part())
    identity = tf.eye(root.domain_dimension_tensor(), dtype=root.dtype)
    return tf.reduce_sum(tf.square(root.solve(identity)), axis=0)


@check_shapes(
    "A: [M, N]",
    "kff: [N]",
    "features: [M, N]",
    "return: [N, broadcast P]",
)
def marginal_variances(
    A: tf.Tensor, kff: tf.Tensor, features: tf.Tensor, q_sqrt: tf.Tensor | None
) -> tf.Tensor:
    """The variance of f at each point; never negative.

    :param A: Whitened features ``L^{-1} Kuf``.
    :param kff: Prior variances.
    :param features: What q_sqrt multiplies: A where q is whitened, ``Kuu^{-1} Kuf`` where not.
    """
    # What the features do not explain is not negative; rounding can make it so.
    unexplained = tf.maximum(kff - tf.reduce_sum(tf.square(A), axis=0), 0)[:, None]
    return unexplained if q_sqrt is None else unexplained + projected_variances(features, q_sqrt)


@check_shapes(
    "features: [M, N]",
    "return: [N, P]",
)
def projected_variances(features: tf.Tensor, q_sqrt: tf.Tensor) -> tf.Tensor:
    """The diagonals of ``features^T S features``, for each of the P latent GPs."""
    if q_sqrt.shape.rank == 2:
        return tf.matmul(tf.square(features), tf.square(q_sqrt), transpose_a=True)
    if q_sqrt.shape[0] == 1:  # a plain matrix product is faster than a batch of one
        projected = tf.matmul(q_sqrt[0], features, transpose_a=True)
        return tf.reduce_sum(tf.square(projected), axis=0)[:, None]
    projected = tf.matmul(q_sqrt, features[None], transpose_a=True)
    return tf.linalg.matrix_transpose(tf.reduce_sum(tf.square(projected), axis=-2))


@check_shapes(
    "columns: [M, N]",
    "kff: [N]",
    "kuu: [M]",
    "q_mu: [M, P]",
    "return[0]: [N, P]",
    "return[1]: [N, broadcast P]",
)
def diagonal_marginals(
    columns: tf.Tensor,
    kff: tf.Tensor,
    kuu: tf.Tensor,
    q_mu: tf.Tensor,
    q_sqrt: tf.Tensor | None,
    whiten: bool,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and variance of f at each point where Kuu and S are diagonal.

    As :func:`marginal_variances`, but the scaling by Kuu goes into the small factors of two matrix
    products, and Kuf is read twice and squared once: for this case, all the work there is.

    :param columns: Kuf.
    :param kuu: The diagonal of Kuu.
    """
    kuu = kuu[:, None]
    scaling = tf.math.rsqrt(kuu) if whiten else 1 / kuu
    mean = tf.matmul(columns, scaling * q_mu, transpose_a=True)
    weights = 1 / kuu if q_sqrt is None else tf.concat([1 / kuu, (scaling * q_sqrt) ** 2], axis=1)
    explained = tf.matmul(tf.square(columns), weights, transpose_a=True)
    unexplained = tf.maximum(kff[:, None] - explained[:, :1], 0)
    return mean, unexplained if q_sqrt is None else unexplained + explained[:, 1:]


@check_shapes(
    "A: [batch..., M, N]",
    "kff: [batch..., N, N]",
    "features: [batch..., M, N]",
    "return: [batch..., broadcast P, N, N]",
)
def joint_covariance(
    A: tf.Tensor, kff: tf.Tensor, features: tf.Tensor, q_sqrt: tf.Tensor | None
) -> tf.Tensor:
    """The covariance of f over all points; arguments as for :func:`marginal_variances`."""
    cov = (kff - tf.matmul(A, A, transpose_a=True))[..., None, :, :]
    if q_sqrt is None:
        return cov
    features = features[..., None, :, :]
    if q_sqrt.shape.rank == 2:
        projected = tf.transpose(q_sqrt)[:, :, None] * features
    else:
        projected = tf.matmul(q_sqrt, features, transpose_a=True)
    return cov + tf.matmul(projected, projected, transpose_a=True)


@check_shapes(
    "q_mu: [M, P]",
    "return: []",
)
def kl_divergence(
    q_mu: tf.Tensor,
    q_sqrt: tf.Tensor,
    root: tf.linalg.LinearOperator | None,
    log_determinant: tf.Tensor | None = None,
) -> tf.Tensor:
    """``KL[N(q_mu, S) || N(0, Kuu)]``, summed over the P columns.

    :param root: L; None for whitened variables, whose prior is N(0, I).
    :param log_determinant: The sum of those of S, if q_sqrt is not triangular.
    """
    whitened_mean = q_mu if root is None else root.solve(q_mu)
    if q_sqrt.shape.rank == 2:
        q_diagonal = q_sqrt
    else:
        q_diagonal = tf.linalg.diag_part(q_sqrt)
    if root is None:
        trace = tf.reduce_sum(tf.square(q_sqrt))
    elif is_diagonal(root) or q_sqrt.shape.rank == 2:
        # tr(Kuu^{-1} S) needs one diagonal of two: that of Kuu^{-1} and that of S.
        variances = tf.square(q_sqrt)
        if q_sqrt.shape.rank == 3:
            variances = tf.linalg.matrix_transpose(tf.reduce_sum(variances, axis=-1))
        trace = tf.reduce_sum(inverse_diagonal(root)[:, None] * variances)
    else:
        trace = tf.reduce_sum(tf.square(root.solve(q_sqrt)))
    if log_determinant is None:
        log_determinant = tf.reduce_sum(tf.math.log(tf.square(q_diagonal)))
    size = tf.cast(tf.size(q_mu), q_mu.dtype)
    twice = tf.reduce_sum(tf.square(whitened_mean)) + trace - size - log_determinant
    if root is not None:
        num_latent = tf.cast(tf.shape(q_mu)[1], q_mu.dtype)
        twice += 2 * num_latent * root.log_abs_determinant()
    return twice / 2
