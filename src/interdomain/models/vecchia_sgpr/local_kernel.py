"""The local kernel with its coordinates, and the distribution of a row given its neighbours."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel, Stationary

from ..._arguments import Array, choice, instance, warn
from ...core.columns import checked_columns
from ...families.sphere.mathematics.globe import (
    check_latitude_longitude,
    on_the_globe,
    warn_of_radians,
)
from ...training.scales import FAR
from .search import Neighbours, in_lengthscales


class LocalKernel:
    """A stationary kernel with the coordinates in which distances of rows are measured.

    :param kernel: The kernel of g.
    :param inputs: "euclidean", or "degrees" for latitude and longitude: coordinates are then points
        in space on a globe of radius 1, and lengthscales are chords.
    :raises ValueError: For kernels that are not stationary.
    """

    def __init__(self, kernel: Kernel, inputs: str) -> None:
        choice("local_inputs", inputs, ("euclidean", "degrees"))
        what = "a stationary kernel of GPflow such as Matern32, which has lengthscales"
        remedy = (
            "sums, products and kernels of categories are not supported: leave them to the "
            "features, and pass gpflow.kernels.Matern32(lengthscales=...) of the other columns by "
            "active_dims; a sum of two scales is interdomain.kernels.TwoScales"
        )
        instance("local_kernel", kernel, Stationary, what, remedy)
        self.kernel, self.inputs = kernel, inputs

    def check(self, X: Array, name: str = "data: X") -> None:
        """:raises ValueError: For rows that the kernel does not accept."""
        columns = self._columns(X)
        if self.inputs == "degrees":
            checked_columns(columns, 2, ", latitude and longitude in degrees", "select them")
            check_latitude_longitude(name, np.asarray(columns))
        width = 3 if self.inputs == "degrees" else columns.shape[1]
        shape = self.kernel.lengthscales.shape
        if shape not in ((), (width,)):
            raise ValueError(
                f"local_kernel must have one lengthscale, or {width} for this X, found "
                f"{list(shape)}; pass lengthscales=np.ones({width})."
            )
        in_lengthscales(self.points(X), self.lengthscales)

    def check_new(self, X: Array, num_columns: int) -> None:
        """
        :raises ValueError: For new rows with another number of columns than the rows of the model,
            and for new rows that the kernel does not accept.
        """
        if X.ndim != 2 or X.shape[1] != num_columns:
            what = f"{X.shape[1]} columns" if X.ndim == 2 else f"shape {list(X.shape)}"
            raise ValueError(
                f"X must be new rows [n, {num_columns}], as the rows of the model have "
                f"{num_columns} columns, found {what}; pass rows of the same columns."
            )
        self.check(X, "X")

    def warn(self, X: Array) -> None:
        """Warn if latitudes and longitudes are in radians, or if lengthscales are not chords."""
        if self.inputs != "degrees":
            return
        warn_of_radians("data: X", np.asarray(self._columns(X)))
        size, lengths = float(np.max(np.ptp(self.points(X), axis=0))), self.lengthscales
        if 0 < size < np.min(lengths) / FAR:
            warn(
                f"data: X has a size of {size:.3g} on a globe of radius 1, and the lengthscales of "
                f"local_kernel, which are chords, are {np.min(lengths):.3g} or more; pass a "
                f"{type(self.kernel).__name__} with lengthscales to match."
            )

    @property
    def lengthscales(self) -> Array:
        """The lengthscales that are the units of distances, ``[]`` or ``[d]`` in float64."""
        with tf.init_scope():
            return np.asarray(self.kernel.lengthscales.numpy(), np.float64)

    def _columns(self, X: Any) -> Any:
        """The columns of rows that the kernel uses."""
        return self.kernel.slice(X, None)[0]

    def other_columns(self, X: Array) -> Array:
        """The columns of rows ``[N, D]`` that the kernel does not use."""
        numbers = np.arange(X.shape[1])
        return X[:, np.setdiff1d(numbers, self._columns(numbers[None]))]

    def coordinates(self, X: tf.Tensor) -> tf.Tensor:
        """The coordinates ``[..., d]`` of rows ``[..., D]``."""
        columns = self._columns(X)
        return on_the_globe(columns) if self.inputs == "degrees" else columns

    def points(self, X: Array) -> Array:
        """The coordinates of rows ``[N, D]`` as an array ``[N, d]``."""
        with tf.init_scope():
            points: Array = self.coordinates(tf.convert_to_tensor(X)).numpy()
            return points

    def neighbours(self, X: Array) -> Neighbours:
        """The search of neighbours among rows ``[N, D]``, with the present lengthscales."""
        return Neighbours(self.points(X), self.lengthscales)

    def covariance(self, coordinates: tf.Tensor) -> tf.Tensor:
        """The covariances of points ``[..., n, d]``, ``[..., n, n]`` in float64.

        GPflow computes distances from inner products, which would cancel far from the origin.
        """
        centred = coordinates - coordinates[..., -1:, :]
        return tf.cast(self.kernel.K(centred), tf.float64)

    def variations(self, distances: Array, dimension: int) -> Array:
        """The variance of ``g(x) - g(x')`` at distances in lengthscales, ``[n]``: the largest over
        the directions of coordinates."""
        steps = distances[:, None, None] * np.diag(np.broadcast_to(self.lengthscales, dimension))
        with tf.init_scope():
            pairs = tf.stack([tf.zeros_like(steps), tf.constant(steps)], axis=-2)
            pairs = tf.cast(pairs, gpflow.default_float())
            covariances = self.covariance(pairs).numpy()
        falls = np.max(covariances[..., 0, 0] - covariances[..., 0, 1], axis=1)
        variations: Array = np.maximum(2.0 * falls, 0.0)
        return variations


def conditional_weights(
    covariance: tf.Tensor, mask: tf.Tensor, noise_variances: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The weights w that whiten a row by its neighbours, ``w = (-a, 1) / sqrt(d)``, and ``log d``.

    ``w^T y`` has variance one and is independent of the neighbours. With ``C = K + diag(s)`` for
    the neighbours and, last, the row: ``a = C_nn^{-1} c_n`` and ``d = c - c_n^T a`` (Vecchia 1988).
    The last row of the inverse of the Cholesky factor of C is w.

    :param covariance: K, ``[B, n, n]``.
    :param mask: Whether each neighbour exists, ``[B, n]``; missing neighbours get the weight zero.
    :param noise_variances: s, ``[]`` or ``[B, n]``, raised to 2 n eps of the variances. With less
        noise, rounding can leave C without a Cholesky factor.
    :return: w ``[B, n]`` and ``log d`` ``[B]``.
    """
    here = tf.cast(mask, covariance.dtype)
    covariance *= here[:, :, None] * here[:, None, :]
    variances = tf.linalg.diag_part(covariance)
    size = tf.cast(tf.shape(covariance)[-1], covariance.dtype)
    rounding = size * np.finfo(covariance.dtype.as_numpy_dtype).eps
    noise_variances = tf.maximum(noise_variances, 2 * rounding * variances)
    diagonal = variances + noise_variances * here + (1 - here)
    weights, log_variances = _last_row(tf.linalg.set_diag(covariance, diagonal))
    return weights, log_variances


@tf.custom_gradient
def _last_row(C: tf.Tensor) -> Any:
    """The last row w of ``L^{-1}``, and twice the logarithm of the last entry of L, ``C = L L^T``.

    As ``C^{-1} e = w / sqrt(d)`` for the last unit vector e, ``d log d = w^T dC w`` and ``dw = w
    (w^T dC w) / 2 - C^{-1} dC w``: the gradient needs one more solve, not that of a factor.
    """
    root = tf.linalg.cholesky(C)
    size = tf.shape(C)[-1]
    unit = tf.zeros_like(C[:, :, :1]) + tf.one_hot(size - 1, size, dtype=C.dtype)[:, None]
    w = tf.linalg.triangular_solve(root, unit, adjoint=True)

    def gradient(to_w: tf.Tensor, to_log: tf.Tensor) -> tf.Tensor:
        turned = tf.linalg.cholesky_solve(root, to_w[..., None])
        along = tf.reduce_sum(to_w[..., None] * w, axis=1, keepdims=True) / 2
        half = (along + to_log[:, None, None]) * w / 2 - turned / 2
        product = tf.matmul(half, w, transpose_b=True)
        return product + tf.linalg.matrix_transpose(product)

    return (w[..., 0], 2 * tf.math.log(root[:, -1, -1])), gradient
