"""The diagonal of a kernel as sums of products: what the parameters scale, and what rows bring."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel

from .columns import select_columns
from .zonal import ZonalKernel

DiagonalTerm = tuple[Callable[[tf.Tensor], tf.Tensor], Callable[[], tf.Tensor]]
"""What each row of ``[N, D]`` brings, ``[N]``, and the factor, a scalar, that all rows share."""


def diagonal_terms(kernel: Kernel, num_columns: int) -> list[DiagonalTerm]:
    """Terms with ``K(x_n, x_n) = sum over terms of factor * row(x_n)``.

    Sums over rows of what rows bring then serve for all values of the factors. A kernel without a
    known form has one term, its diagonal, with the factor one.

    :param num_columns: Number D of columns of X.
    """
    if isinstance(kernel, ZonalKernel) and type(kernel).K_diag is ZonalKernel.K_diag:
        rows = partial(_squared_radii, kernel)
        return [(rows, partial(_zonal_factor, kernel, num_columns))]
    stationary = gpflow.kernels.Stationary
    if isinstance(kernel, stationary) and type(kernel).K_diag is stationary.K_diag:
        return [(_ones, lambda: tf.convert_to_tensor(kernel.variance))]
    if type(kernel) is gpflow.kernels.Sum:
        return [term for part in kernel.kernels for term in diagonal_terms(part, num_columns)]
    return [(lambda X: kernel(X, full_cov=False), lambda: tf.ones([], gpflow.default_float()))]


def _ones(X: tf.Tensor) -> tf.Tensor:
    return tf.ones_like(X[:, 0])


def _squared_radii(kernel: ZonalKernel, X: tf.Tensor) -> tf.Tensor:
    radius, _ = kernel.to_sphere(select_columns(kernel, X))
    return kernel.radial_factor(radius[:, 0], 2 * kernel.radial_power)


def _zonal_factor(kernel: ZonalKernel, num_columns: int) -> tf.Tensor:
    if kernel.max_degree is None:
        return tf.convert_to_tensor(kernel.variance)
    one_row = select_columns(kernel, tf.zeros([1, num_columns], kernel.variance.dtype))
    shares = kernel.variance_shares(one_row.shape[-1] + 1, kernel.max_degree)
    return kernel.variance * tf.reduce_sum(shares)
