"""Shapes as in GPflow's posteriors: leading dimensions of X, one covariance per latent GP."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType


class Rows:
    """New inputs as rows of one matrix, and results back in the shape of the inputs.

    :param Xnew: ``[batch..., N, D]``; B is the number of its sets of N rows.
    :ivar flat: ``[B N, D]``.
    :ivar num_sets: B.
    """

    def __init__(self, Xnew: TensorType) -> None:
        Xnew = tf.convert_to_tensor(Xnew)
        self._shape = tf.shape(Xnew)
        self._is_matrix = Xnew.shape.rank == 2
        self.flat = Xnew if self._is_matrix else tf.reshape(Xnew, [-1, Xnew.shape[-1]])
        self.num_sets = tf.constant(1) if self._is_matrix else tf.reduce_prod(self._shape[:-2])

    def columns(self, values: tf.Tensor) -> tf.Tensor:
        """``[batch..., N, P]`` from ``[B N, P]``."""
        if self._is_matrix:
            return values
        return tf.reshape(values, tf.concat([self._shape[:-1], tf.shape(values)[-1:]], axis=0))

    def covariances(self, values: tf.Tensor) -> tf.Tensor:
        """``[batch..., P, N, N]`` from ``[B, P, N, N]``."""
        if self._is_matrix:
            return values[0]
        return tf.reshape(values, tf.concat([self._shape[:-2], tf.shape(values)[1:]], axis=0))

    def broadcast(self, cov: tf.Tensor, mean: tf.Tensor, full_cov: bool) -> tf.Tensor:
        """One (co)variance for each latent GP, of which ``mean`` has the number."""
        if not full_cov:
            return tf.broadcast_to(cov, tf.shape(mean))
        shape = tf.concat([tf.shape(cov)[:-3], tf.shape(mean)[-1:], tf.shape(cov)[-2:]], axis=0)
        return tf.broadcast_to(cov, shape)
