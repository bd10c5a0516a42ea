"""The standard normal numbers that samples of hidden layers are made of."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
import tensorflow as tf
from scipy.special import ndtri
from scipy.stats import qmc

from .._arguments import Array

_MOST_SOBOL = 21_201
"""Dimensions of the Sobol sequence that SciPy has."""


class StepDraws(gpflow.Module):
    """Draws for training: they depend on a seed and the number of the step, and on nothing else.

    So a fit that is resumed draws what it would have drawn, and all evaluations of the loss in one
    step draw the same.

    :param seed: A number.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(name="step_draws")
        self.seed = seed
        self.step = tf.Variable(0, trainable=False, dtype=tf.int64, name="step")

    def normal(self, layer: int, shape: Sequence[int | tf.Tensor]) -> tf.Tensor:
        """Standard normal numbers for the outputs of a layer."""
        step = tf.cast(self.step, tf.int32)
        seed = tf.random.experimental.stateless_fold_in(tf.constant([self.seed, layer]), step)
        return tf.random.stateless_normal(shape, seed, dtype=gpflow.default_float())


def spread_draws(widths: Sequence[int], num_samples: int, seed: int) -> list[Array]:
    """Draws for predictions, ``[S, 1, P]`` for each hidden layer of P outputs.

    They are spread evenly (a scrambled Sobol sequence of all hidden outputs together), so that a
    few samples are enough. They are the same for every row, so that a prediction does not depend on
    the other rows, and is a smooth function of the inputs.
    """
    total = sum(widths)
    if total <= _MOST_SOBOL:
        size = 2 ** int(np.ceil(np.log2(max(num_samples, 1))))
        uniform = qmc.Sobol(total, scramble=True, seed=seed).random(size)[:num_samples]
        values = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    else:
        values = np.random.default_rng(seed).standard_normal([num_samples, total])
    ends = np.cumsum(widths)[:-1]
    parts = np.split(values.astype(gpflow.default_float()), ends, axis=1)
    return [part[:, None] for part in parts]
