"""Posteriors whose cache consists of a few tensors, such as the weights of features."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.posteriors import PrecomputeCacheType, PrecomputedValue

from .._arguments import Array
from .blockwise import PosteriorOfAnyInputs


class WeightedFeatures(Protocol):
    """Features that can be multiplied by weights."""

    def values(self, weights: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The sums of features with weights ``[S, M, L]`` at X ``[N, D]``, ``[S, N, L]``."""

    def entries_per_row(self, weights: tf.Tensor) -> int:
        """The number of values that :meth:`values` has in memory for each row of X."""


class TensorsPosterior(PosteriorOfAnyInputs):
    """A posterior that computes predictions from a cache of a few tensors."""

    @abc.abstractmethod
    def tensors(self) -> tuple[tf.Tensor, ...]:
        """The tensors that do not depend on new inputs."""

    @abc.abstractmethod
    def conditional(
        self,
        tensors: tuple[tf.Tensor, ...],
        Xnew: tf.Tensor,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        """Mean and (co)variance of f without the mean function."""

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        return tuple(PrecomputedValue(part, (False,) * part.shape.rank) for part in self.tensors())

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return self.conditional(self.tensors(), Xnew, full_cov, full_output_cov)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        return self.conditional(cache, Xnew, full_cov, full_output_cov)


class WeightsPosterior(TensorsPosterior):
    """A posterior of the weights of features; draws of the weights give random functions.

    :param sums: The sums over rows, with their ``features``.
    :param latents: Function that returns the latent GPs of q.
    """

    def __init__(
        self,
        sums: Any,
        latents: Callable[[], Any],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> None:
        features = sums.features
        super().__init__(
            features.kernel, features.inducing_variable, mean_function=features.mean_function
        )
        self._features, self._sums, self._latents = features, sums, latents
        self.fill_cache(precompute_cache)

    @abc.abstractmethod
    def draw_weights(self, rng: np.random.Generator, num_samples: int) -> Array:
        """Draw weights, ``[S, M, L]``.

        :raises ValueError: If the features do not represent the prior completely.
        """

    @abc.abstractmethod
    def weighted_features(
        self, inducing_variable: InducingVariables, kernel: Kernel
    ) -> WeightedFeatures:
        """The features to be multiplied by weights, for copies of inducing variable and kernel."""
