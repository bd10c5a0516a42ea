"""The inducing variable of a family that is added from outside, and its covariances.

Values of a Matern-1/2 process at increasing places: inducing points of one column, whose Kuu nobody
has to factorise.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Matern12

from interdomain.inducing_variables import InterDomainInducingVariables

from .markov_operator import MarkovChain


class MarkovPoints(InterDomainInducingVariables):
    """Places in one column.

    :param places: Increasing numbers ``[M]``.
    :raises ValueError: If they do not increase.
    """

    kernels = (Matern12,)

    def __init__(self, places: Any) -> None:
        super().__init__()
        self.places = np.asarray(places, dtype=float)
        if self.places.ndim != 1 or np.any(np.diff(self.places) <= 0):
            raise ValueError(f"places must be numbers [M] that increase, found {places}.")

    @property
    def num_inducing(self) -> int:
        return len(self.places)

    @property
    def shape(self) -> tuple[int, int, int]:
        return (len(self.places), 1, 1)

    def Kuf(self, kernel: Matern12, X: TensorType) -> tf.Tensor:
        """The kernel itself."""
        X = tf.convert_to_tensor(kernel.slice(X)[0])
        gaps = tf.abs(tf.cast(self.places, X.dtype)[:, None] - tf.reshape(X, [1, -1]))
        values = kernel.variance * tf.exp(-gaps / kernel.lengthscales)
        return tf.reshape(values, tf.concat([[len(self.places)], tf.shape(X)[:-1]], axis=0))

    def Kuu(self, kernel: Matern12, *, jitter: float = 0.0) -> MarkovChain:
        """A Markov chain; nothing is factorised, so there is no jitter."""
        steps = tf.exp(
            -tf.constant(np.diff(self.places), gpflow.default_float()) / kernel.lengthscales
        )
        return MarkovChain(steps, tf.convert_to_tensor(kernel.variance))
