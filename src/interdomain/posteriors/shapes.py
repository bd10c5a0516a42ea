"""Shapes as in GPflow's posteriors: leading dimensions of X, one covariance per latent GP."""

from __future__ import annotations

import tensorflow as tf

from ..kernels._columns import as_rows, with_columns


class Rows:
    """New inputs as rows of one matrix, and results back in the shape of the inputs.

    A rank or a number of columns that is not known when a graph is built goes no further than
    here: ``flat`` and ``sets`` have them in their static shapes.

    :param Xnew: ``[batch..., N, D]``; B is the number of its sets of N rows.
    :param num_columns: D, for an Xnew without a static number of columns, where that is known.
    :ivar flat: ``[B N, D]``.
    :ivar num_sets: B.
    """

    def __init__(self, Xnew: tf.Tensor, num_columns: int | None = None) -> None:
        self._inputs = Xnew
        self._shape = tf.shape(Xnew)
        self._is_matrix = Xnew.shape.rank == 2
        self.flat = as_rows(Xnew, num_columns)
        self.num_sets = tf.constant(1) if self._is_matrix else tf.reduce_prod(self._shape[:-2])

    @property
    def sets(self) -> tf.Tensor:
        """The inputs as they are; ``[B, N, D]`` if their rank is not known."""
        if self._is_matrix:
            return self.flat
        num_columns = self.flat.shape[-1]
        if self._inputs.shape.rank is not None:
            return with_columns(self._inputs, num_columns)
        shape = tf.concat([[self.num_sets], self._shape[-2:]], axis=0)
        return tf.ensure_shape(tf.reshape(self._inputs, shape), [None, None, num_columns])

    def columns(self, values: tf.Tensor) -> tf.Tensor:
        """``[batch..., N, P]`` from ``[B N, P]``."""
        if self._is_matrix:
            return values
        return tf.reshape(values, tf.concat([self._shape[:-1], tf.shape(values)[-1:]], axis=0))

    def covariances(self, prior: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
        """``[batch..., P, N, N]``, from the prior's at ``sets`` and changes ``[B, P, N, N]``."""
        if self._inputs.shape.rank is None:
            return self._in_batches(prior[:, None] + changes)
        return prior[..., None, :, :] + self._in_batches(changes)

    def _in_batches(self, values: tf.Tensor) -> tf.Tensor:
        if self._is_matrix:
            return values[0]
        return tf.reshape(values, tf.concat([self._shape[:-2], tf.shape(values)[1:]], axis=0))

    def broadcast(self, cov: tf.Tensor, mean: tf.Tensor, full_cov: bool) -> tf.Tensor:
        """One (co)variance for each latent GP, of which ``mean`` has the number."""
        if not full_cov:
            return tf.broadcast_to(cov, tf.shape(mean))
        shape = tf.concat([tf.shape(cov)[:-3], tf.shape(mean)[-1:], tf.shape(cov)[-2:]], axis=0)
        return tf.broadcast_to(cov, shape)
