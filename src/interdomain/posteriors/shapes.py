"""Shapes as in GPflow's posteriors: leading dimensions of X, one covariance per latent GP."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import MeanAndVariance, TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel


def covariances_with(
    inducing_variable: InducingVariables, kernel: Kernel, Xnew: TensorType, full_cov: bool
) -> tf.Tensor:
    """Kuf: ``[M, N]``; leading dimensions of Xnew are kept in front for a full covariance,
    ``[batch..., M, N]``, and join the columns otherwise."""
    kuf = Kuf(inducing_variable, kernel, Xnew)
    rank = kuf.shape.rank
    if rank == 2:
        return kuf
    if full_cov:
        return tf.transpose(kuf, [*range(1, rank - 1), 0, rank - 1])
    return tf.reshape(kuf, [tf.shape(kuf)[0], -1])


def prior_covariances(kernel: Kernel, Xnew: TensorType, full_cov: bool) -> tf.Tensor:
    """Kff: ``[batch..., N, N]`` for a full covariance; otherwise the variances ``[N]``, which the
    leading dimensions have joined."""
    kff = kernel(Xnew, full_cov=full_cov)
    return kff if full_cov else tf.reshape(kff, [-1])


def mean_and_covariance(
    Xnew: TensorType, mean: tf.Tensor, cov: tf.Tensor, full_cov: bool
) -> MeanAndVariance:
    """One covariance for each latent GP, and the leading dimensions of Xnew back in place."""
    if full_cov:
        shape = tf.concat([tf.shape(cov)[:-3], tf.shape(mean)[-1:], tf.shape(cov)[-2:]], axis=0)
        return mean, tf.broadcast_to(cov, shape)
    shape = tf.concat([tf.shape(Xnew)[:-1], tf.shape(mean)[-1:]], axis=0)
    cov = tf.reshape(tf.broadcast_to(cov, tf.shape(mean)), shape)
    return tf.reshape(mean, shape), cov
