"""Gaussians and sinusoids, of which spectral kernels are made.

Parameters that stand for a positive-definite matrix ``[D, D]`` are a number (times the identity),
its diagonal ``[D]``, or the matrix; their shape says which.
"""

from __future__ import annotations

import math

import gpflow
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import check_shapes
from gpflow.utilities import positive
from gpflow.utilities.ops import square_distance

from ..sphere._typing import Array


def definite_parameter(value: Array, name: str) -> gpflow.Parameter:
    """A parameter that is positive definite for every value of its unconstrained variable."""
    if value.ndim < 2:
        return gpflow.Parameter(value, transform=positive(), name=name)
    transform = tfp.bijectors.Chain(
        [
            tfp.bijectors.CholeskyOuterProduct(),
            tfp.bijectors.FillScaleTriL(diag_bijector=positive(), diag_shift=None),
        ]
    )
    return gpflow.Parameter(value, transform=transform, name=name)


@check_shapes(
    "scales: [D]",
    "return: [D, D]",
)
def scaled_matrix(value: tf.Tensor, scales: tf.Tensor) -> tf.Tensor:
    """``diag(scales) M diag(scales)``, for M in any of its forms."""
    if value.shape.rank == 2:
        return scales[:, None] * value * scales
    return tf.linalg.diag(scales * value * scales)


@check_shapes(
    "scales: [D]",
    "return: [D, D]",
)
def scaled_root(value: tf.Tensor, scales: tf.Tensor) -> tf.Tensor:
    """L with ``L L^T`` the matrix of :func:`scaled_matrix`."""
    if value.shape.rank == 2:
        return scales[:, None] * tf.linalg.cholesky(value)
    return tf.linalg.diag(scales * tf.sqrt(value))


@check_shapes(
    "X: [batch..., N, D]",
    "X2: [batch2..., N2, D]",
    "root: [D, D]",
)
def gaussian_of_lag(X: tf.Tensor, X2: tf.Tensor | None, root: tf.Tensor) -> tf.Tensor:
    """``exp(-2 pi^2 t^T L L^T t)`` for the differences t of all inputs."""
    Y = tf.linalg.matmul(X, root)
    Y2 = None if X2 is None else tf.linalg.matmul(X2, root)
    return tf.exp(-2 * math.pi**2 * square_distance(Y, Y2))


@check_shapes(
    "X: [batch..., N, D]",
    "frequencies: [Q, D]",
    "return: [batch..., N, Q]",
)
def phases(X: tf.Tensor, frequencies: tf.Tensor) -> tf.Tensor:
    """``2 pi mu^T x``."""
    return 2 * math.pi * tf.linalg.matmul(X, frequencies, transpose_b=True)


@check_shapes(
    "first: [batch..., N, K]",
    "second: [batch2..., N2, K]",
    "return: [batch..., N, batch2..., N2]",
)
def outer_product(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    """The products of all rows, as GPflow orders them: the batches of X before those of X2."""
    return tf.tensordot(first, second, axes=[[-1], [-1]])


@check_shapes(
    "points: [n, D]",
    "covariance: [D, D]",
    "return: [n]",
)
def normal_density(points: tf.Tensor, covariance: tf.Tensor) -> tf.Tensor:
    """``N(w | 0, covariance)``."""
    root = tf.linalg.cholesky(covariance)
    whitened = tf.linalg.triangular_solve(root, tf.linalg.matrix_transpose(points))
    return tf.exp(log_normaliser(root) - tf.reduce_sum(tf.square(whitened), axis=0) / 2)


@check_shapes(
    "first: [n, D]",
    "second: [k, D]",
    "covariance: [D, D]",
    "return: [n, k]",
)
def normal_density_of_differences(
    first: tf.Tensor, second: tf.Tensor, covariance: tf.Tensor
) -> tf.Tensor:
    """``N(w - v | 0, covariance)`` for all pairs."""
    root = tf.linalg.cholesky(covariance)
    whitened = [
        tf.linalg.matrix_transpose(
            tf.linalg.triangular_solve(root, tf.linalg.matrix_transpose(points))
        )
        for points in (first, second)
    ]
    return tf.exp(log_normaliser(root) - square_distance(*whitened) / 2)


@check_shapes(
    "root: [D, D]",
    "return: []",
)
def log_normaliser(root: tf.Tensor) -> tf.Tensor:
    """The logarithm of the normal density with covariance ``L L^T`` at its mean."""
    dimension = root.shape[0]
    return -dimension / 2 * math.log(2 * math.pi) - tf.reduce_sum(
        tf.math.log(tf.linalg.diag_part(root))
    )
