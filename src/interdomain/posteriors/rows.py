"""New inputs of any rank as rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.base import TensorType

from ..core.columns import as_rows
from ..core.inputs import num_columns_of_latents
from ..core.latents import LatentGPs


class Rows:
    """New inputs as rows of one matrix, and results back in the shape of the inputs, as in GPflow's
    posteriors: leading dimensions of X, one covariance per latent GP.

    A rank or a number of columns that is not known when a graph is built goes no further than
    here: ``flat`` and ``sets`` have them in their static shapes.

    :param Xnew: ``[batch..., N, D]``; B is the number of its sets of N rows.
    :param latents: The latent GPs, which may know a D that Xnew does not have statically.
    :ivar flat: ``[B N, D]``.
    :ivar num_sets: B.
    """

    def __init__(self, Xnew: TensorType, latents: Sequence[LatentGPs]) -> None:
        Xnew = tf.convert_to_tensor(Xnew)
        num_columns = num_columns_of_latents(latents) if Xnew.shape[-1] is None else None
        self._shape = tf.shape(Xnew)
        self._is_matrix = Xnew.shape.rank == 2
        self.flat = as_rows(Xnew, num_columns)
        self.num_sets = tf.constant(1) if self._is_matrix else tf.reduce_prod(self._shape[:-2])

    @property
    def sets(self) -> tf.Tensor:
        """The inputs of a single set ``[N, D]``, or of all, ``[B, N, D]``."""
        if self._is_matrix:
            return self.flat
        shape = tf.concat([[self.num_sets], self._shape[-2:]], axis=0)
        sets = tf.reshape(self.flat, shape)
        return tf.ensure_shape(sets, [None, None, self.flat.shape[-1]])

    def columns(self, values: tf.Tensor) -> tf.Tensor:
        """``[batch..., N, P]`` from ``[B N, P]``."""
        if self._is_matrix:
            return values
        return tf.reshape(values, tf.concat([self._shape[:-1], tf.shape(values)[-1:]], axis=0))

    def covariances(self, prior: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
        """``[batch..., P, N, N]``, from the prior's at ``sets`` and changes ``[B, P, N, N]``."""
        values = prior[..., None, :, :] + changes
        if self._is_matrix:
            return values[0]
        return tf.reshape(values, tf.concat([self._shape[:-2], tf.shape(values)[1:]], axis=0))

    def broadcast(self, cov: tf.Tensor, mean: tf.Tensor, full_cov: bool) -> tf.Tensor:
        """One (co)variance for each latent GP, of which ``mean`` has the number."""
        if not full_cov:
            return tf.broadcast_to(cov, tf.shape(mean))
        shape = tf.concat([tf.shape(cov)[:-3], tf.shape(mean)[-1:], tf.shape(cov)[-2:]], axis=0)
        return tf.broadcast_to(cov, shape)
