"""Kernels of functions that sum a base function over a set of points, such as patches or orbits."""

from __future__ import annotations

import abc
from collections.abc import Callable

import gpflow
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from .._arguments import refusal
from ..linalg.chunks import map_rows
from .columns import WholeRows, as_rows, kernel_method, with_columns
from .point_sums import cross_sums, double_sums, quadratic_sums

_MAX_POINT_ENTRIES = 2**24
"""The largest number of entries in the points of inputs that are in memory at the same time."""

_MINIBATCH = 256
"""The number of inputs that is assumed if it is not known before the graph runs."""


class SummedKernel(WholeRows, metaclass=abc.ABCMeta):
    """A kernel computed as sums for pairs of inputs, and then made symmetric to the last digit."""

    @property
    @abc.abstractmethod
    def input_dim(self) -> int | None:
        """The number of (active) columns of X, if this kernel alone determines it. Graphs can then
        be built before X is known."""

    def seen(self, X: TensorType) -> tf.Tensor:
        return with_columns(super().seen(X), self.input_dim)

    @abc.abstractmethod
    def _matrix(self, X: tf.Tensor, X2: tf.Tensor | None) -> tf.Tensor:
        """The covariances of rows ``[N, D]``, active columns only, with X2, or with each other."""

    @abc.abstractmethod
    def _batched_K(self, X: tf.Tensor) -> tf.Tensor:
        """The covariances of the rows of each batch with each other, ``[batch..., N, N]``."""

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        X = self.seen(X)
        if X2 is None:
            return self._batched_K(X) if X.shape.rank > 2 else self._symmetric(X)
        X2 = self.seen(X2)
        matrix = self._matrix(as_rows(X), as_rows(X2))
        return tf.reshape(matrix, tf.concat([tf.shape(X)[:-1], tf.shape(X2)[:-1]], axis=0))

    def _symmetric(self, X: tf.Tensor) -> tf.Tensor:
        """The symmetric covariances of rows ``[N, D]``, active columns only, with each other."""
        matrix = self._matrix(X, None)
        return (matrix + tf.linalg.matrix_transpose(matrix)) / 2


class SetKernel(SummedKernel, metaclass=abc.ABCMeta):
    """The kernel of ``f(x) = sum_p w_p g(x_p)``, for ``g ~ GP(0, k_g)`` and P points x_p of each x.

    ``k(x, x') = sum_p sum_q w_p w_q k_g(x_p, x'_q)`` is a weighted set kernel: it depends on x only
    through the set of its points. g is the base function. If the points are the patches of an
    image, this is a convolutional kernel (van der Wilk et al., *Convolutional Gaussian Processes*,
    2017, eqs. 14 and 18). If they are the orbit of x under a group, it is the kernel of an
    invariant function (eq. D.29). Inducing variables are best placed in g: ``cov(g(z), f(x)) =
    sum_p w_p k_g(z, x_p)`` takes P evaluations of k_g, whereas ``k(x, x')`` takes P^2.

    The sums are computed for a few inputs at a time, forward and backward. Memory therefore grows
    neither with P^2 nor with the P^2 N^2 of a matrix. Gradients have a closed form for squared
    exponential and Matern kernels, their sums, and products of squared exponentials. For other
    kernels, the backward pass computes each part again.

    To define your own set kernel, implement :attr:`point_kernel`, :attr:`point_dim`,
    :attr:`point_weights` and :meth:`points`.
    """

    base_kernel: Kernel

    @property
    def point_kernel(self) -> Kernel:
        """The kernel k_g of the base function g; by default the attribute ``base_kernel``."""
        return self.base_kernel

    @property
    @abc.abstractmethod
    def point_dim(self) -> int | None:
        """The number E of columns of a point; None if it is the number of columns of X."""

    @property
    @abc.abstractmethod
    def point_weights(self) -> tf.Tensor:
        """The weights w_p of the points, ``[P]``."""

    @property
    def input_dim(self) -> int | None:
        return None

    @abc.abstractmethod
    @check_shapes("X: [N, D]", "return: [N, P, E]")
    def points(self, X: tf.Tensor) -> tf.Tensor:
        """The points x_p of each input, from its active columns. P and E must be static."""

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        def row_variances(rows: tf.Tensor) -> tf.Tensor:
            return quadratic_sums(self.point_kernel, self.points(rows), self.point_weights)

        X = self.seen(X)
        return tf.reshape(self._map_inputs(row_variances, as_rows(X)), tf.shape(X)[:-1])

    @check_shapes("Z: [M, E]", "X: [batch..., N, D]", "return: [M, batch..., N]")
    def point_covariance(self, Z: TensorType, X: TensorType) -> tf.Tensor:
        """The covariances of g(z) and f(x), ``sum_p w_p k_g(z, x_p)`` (eqs. 15, 19 and D.31).

        :raises ValueError: If Z is not in the space of the points.
        """
        X, Z = self.seen(X), tf.convert_to_tensor(Z)
        X = with_columns(X, Z.shape[-1] if self.point_dim is None else None)

        def row_covariances(rows: tf.Tensor, Z: tf.Tensor) -> tf.Tensor:
            points, weights = self.points(rows), self.point_weights
            return tf.transpose(cross_sums(self.point_kernel, Z, points, weights))

        covariances = self._map_inputs(row_covariances, as_rows(X), self.as_points(Z, X.shape[-1]))
        shape = tf.concat([tf.shape(Z)[:1], tf.shape(X)[:-1]], axis=0)
        return tf.reshape(tf.transpose(covariances), shape)

    def as_points(self, Z: TensorType, num_columns: int | None = None) -> tf.Tensor:
        """Z as a tensor ``[M, E]``.

        :param num_columns: The number of columns of X, if it is known.
        :raises ValueError: If Z is not in the space of the points.
        """
        Z, columns = tf.convert_to_tensor(Z), self.point_dim or num_columns
        if columns is not None and Z.shape[-1] != columns:
            remedy = f"pass Z of shape [M, {columns}]"
            rule = f"have {columns} columns for this {type(self).__name__}, as many as a point has"
            raise refusal("Z", rule, Z.shape[-1], remedy)
        return Z

    def _matrix(self, X: tf.Tensor, X2: tf.Tensor | None) -> tf.Tensor:
        points = self.points(X)
        points2 = points if X2 is None else self.points(X2)
        return double_sums(self.point_kernel, points, points2, self.point_weights)

    def _batched_K(self, X: tf.Tensor) -> tf.Tensor:
        shape = tf.concat([[tf.reduce_prod(tf.shape(X)[:-2])], tf.shape(X)[-2:]], axis=0)
        batches = tf.ensure_shape(tf.reshape(X, shape), [None, *X.shape[-2:]])
        matrices = map_rows(lambda part: self._symmetric(part[0])[None], batches, [], 1)
        return tf.reshape(matrices, tf.concat([tf.shape(X)[:-1], tf.shape(X)[-2:-1]], axis=0))

    def _map_inputs(
        self, function: Callable[..., tf.Tensor], X: tf.Tensor, *shared: tf.Tensor
    ) -> tf.Tensor:
        """The function of all inputs at once, or in parts if they have very many points. Parts are
        slower: the gradient computes each again. An unknown number is taken to be a minibatch."""
        per_row = (self.point_dim or X.shape[-1]) * int(self.point_weights.shape[0])
        chunk = max(1, _MAX_POINT_ENTRIES // per_row)
        if X.shape[0] is None and chunk >= _MINIBATCH:
            return function(X, *shared)
        return map_rows(function, X, shared, chunk)


class SetKernelView(SetKernel):
    """A set kernel with the points and weights of a parent, and another base function g."""

    def __init__(self, parent: SetKernel, point_kernel: Kernel) -> None:
        super().__init__(name=f"{parent.name}_{point_kernel.name}")
        self.parent, self.base_kernel = parent, point_kernel
        self.active_dims = parent.active_dims

    @property
    def point_dim(self) -> int | None:
        return self.parent.point_dim

    @property
    def point_weights(self) -> tf.Tensor:
        return self.parent.point_weights

    @property
    def input_dim(self) -> int | None:
        return self.parent.input_dim

    @inherit_check_shapes
    def points(self, X: tf.Tensor) -> tf.Tensor:
        return self.parent.points(X)


def mean_weights(size: int, weights: TensorType | None = None) -> tf.Tensor:
    """The weights of a mean over ``size`` points: ``weights / size``, or ``1 / size`` each."""
    if weights is None:
        return tf.fill([size], tf.constant(1 / size, gpflow.default_float()))
    return tf.convert_to_tensor(weights) / size
