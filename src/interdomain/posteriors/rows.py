"""New inputs of any rank as the rows of one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from gpflow.base import TensorType

from ..core.columns import as_rows
from ..core.inputs import num_columns_of_latents
from ..core.latents import LatentGPs


class Rows:
    """New inputs as the rows of one matrix, and results in the shape of the inputs, as in GPflow's
    posteriors: leading dimensions of X, and one covariance per latent GP.

    If the rank or the number of columns is unknown when a graph is built, this class sets them:
    ``flat`` and ``sets`` have both in their static shapes.

    :param Xnew: New inputs ``[batch..., N, D]``; B is the number of its sets of N rows.
    :param latents: The latent GPs, which may determine D if Xnew does not have it statically.
    :ivar flat: The rows of all sets, ``[B N, D]``.
    :ivar num_sets: The number B of sets.
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
        """The inputs of a single set, ``[N, D]``, or of all sets, ``[B, N, D]``."""
        if self._is_matrix:
            return self.flat
        shape = tf.concat([[self.num_sets], self._shape[-2:]], axis=0)
        sets = tf.reshape(self.flat, shape)
        return tf.ensure_shape(sets, [None, None, self.flat.shape[-1]])

    def columns(self, values: tf.Tensor) -> tf.Tensor:
        """Values ``[B N, P]`` in the shape ``[batch..., N, P]``."""
        if self._is_matrix:
            return values
        return tf.reshape(values, tf.concat([self._shape[:-1], tf.shape(values)[-1:]], axis=0))

    def covariances(self, prior: tf.Tensor, changes: tf.Tensor) -> tf.Tensor:
        """Covariances ``[batch..., P, N, N]``: the prior at ``sets`` plus ``[B, P, N, N]``."""
        values = prior[..., None, :, :] + changes
        if self._is_matrix:
            return values[0]
        return tf.reshape(values, tf.concat([self._shape[:-2], tf.shape(values)[1:]], axis=0))

    def broadcast(self, cov: tf.Tensor, mean: tf.Tensor, full_cov: bool) -> tf.Tensor:
        """One (co)variance for each latent GP; ``mean`` has the number of latent GPs."""
        if not full_cov:
            return tf.broadcast_to(cov, tf.shape(mean))
        shape = tf.concat([tf.shape(cov)[:-3], tf.shape(mean)[-1:], tf.shape(cov)[-2:]], axis=0)
        return tf.broadcast_to(cov, shape)
