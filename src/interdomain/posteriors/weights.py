"""Posteriors that hold the weights of features in a form of their own."""

from __future__ import annotations

import abc
from typing import Protocol

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array
from .blockwise import PosteriorOfAnyInputs


class WeightedFeatures(Protocol):
    """Features that can be multiplied by weights."""

    def values(self, weights: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The sums of features with weights ``[S, M, L]`` at X ``[N, D]``, ``[S, N, L]``."""

    def entries_per_row(self, weights: tf.Tensor) -> int:
        """How many numbers :meth:`values` holds for each row of X."""


class WeightsPosterior(PosteriorOfAnyInputs):
    """A posterior of the weights of features, of which functions are drawn by their weights."""

    @abc.abstractmethod
    def draw_weights(self, rng: np.random.Generator, num_samples: int) -> Array:
        """Draw weights, ``[S, M, L]``.

        :raises ValueError: If the prior does not end with the features.
        """

    @abc.abstractmethod
    def weighted_features(
        self, inducing_variable: InducingVariables, kernel: Kernel
    ) -> WeightedFeatures:
        """What multiplies weights by features, from copies of the inducing variable and kernel."""
