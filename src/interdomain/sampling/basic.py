"""Functions drawn from priors that have simple features: constants, linear functions, units."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from gpflow.kernels import ArcCosine, ChangePoints, Constant, Coregion, Linear

from ..kernels._columns import select_columns
from .draws import Draws, as_array, as_float, constant
from .priors import PriorSample, prior_sample


class Features(PriorSample):
    """Functions that are given by an expression of X.

    :param values: A function from X to the values ``[S, N]``.
    :param entries_per_row: As in every :class:`PriorSample`.
    """

    def __init__(self, values: Callable[[tf.Tensor], tf.Tensor], entries_per_row: int) -> None:
        self._values, self._entries_per_row = values, entries_per_row

    @property
    def entries_per_row(self) -> int:
        return self._entries_per_row

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self._values(X)


@prior_sample.register(Constant)
def prior_sample_constant(kernel: Constant, draws: Draws) -> PriorSample:
    """A number for each function."""
    numbers = constant(draws.weights(draws.num_samples, 1) * math.sqrt(as_float(kernel.variance)))
    return Features(lambda X: numbers * tf.ones_like(X[:, 0]), draws.num_samples)


@prior_sample.register(Linear)
def prior_sample_linear(kernel: Linear, draws: Draws) -> PriorSample:
    """A slope for each column."""
    slopes = draws.weights(draws.num_samples, draws.count_columns(kernel))
    slopes = constant(slopes * np.sqrt(as_array(kernel.variance)))

    def values(X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(slopes, select_columns(kernel, X), transpose_b=True)

    return Features(values, draws.num_samples)


@prior_sample.register(ArcCosine)
def prior_sample_arc_cosine(kernel: ArcCosine, draws: Draws) -> PriorSample:
    """Hidden units with normal weights: GPflow's kernel is twice the mean of their products."""
    number, order = draws.count_columns(kernel), kernel.order
    units = draws.rng.standard_normal((*draws.shape, number + 1))
    units[..., :-1] *= np.sqrt(as_array(kernel.weight_variances))
    units[..., -1] *= math.sqrt(as_float(kernel.bias_variance))
    slopes, offsets = constant(units[..., :-1]), constant(units[..., -1:])
    scale = math.sqrt(2 * as_float(kernel.variance) / draws.num_features)
    weights = constant(draws.weights(*draws.shape) * scale)

    def values(X: tf.Tensor) -> tf.Tensor:
        inner = tf.matmul(slopes, select_columns(kernel, X)[None], transpose_b=True) + offsets
        active = tf.cast(inner > 0, inner.dtype) if order == 0 else tf.nn.relu(inner) ** order
        return tf.einsum("sf,sfn->sn", weights, active)

    return Features(values, 3 * math.prod(draws.shape))


@prior_sample.register(Coregion)
def prior_sample_coregion(kernel: Coregion, draws: Draws) -> PriorSample:
    """A number for each output."""
    covariance = as_array(kernel.output_covariance())
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    numbers = constant(draws.weights(draws.num_samples, len(root)) @ root.T)

    def of_outputs(X: tf.Tensor) -> tf.Tensor:
        return tf.gather(numbers, tf.cast(select_columns(kernel, X)[:, 0], tf.int32), axis=1)

    return Features(of_outputs, draws.num_samples)


@prior_sample.register(ChangePoints)
def prior_sample_change_points(kernel: ChangePoints, draws: Draws) -> PriorSample:
    """One function for each regime, faded into the next as the kernel does."""
    regimes = [prior_sample(part, draws) for part in kernel.kernels]

    def values(X: tf.Tensor) -> tf.Tensor:
        fades = tf.reshape(kernel._sigmoids(X), [tf.shape(X)[0], -1])  # [N, changes]
        ones = tf.ones_like(fades[:, :1])
        shares = tf.concat([ones, fades], axis=1) * tf.concat([1 - fades, ones], axis=1)
        parts = [
            regime(X) * share
            for regime, share in zip(regimes, tf.unstack(shares, axis=1), strict=True)
        ]
        return tf.add_n(parts)

    return Features(values, sum(regime.entries_per_row for regime in regimes))
