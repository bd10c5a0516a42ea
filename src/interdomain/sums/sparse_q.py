"""The posterior of many weights, of which no dense covariance is made: common to sparse structures.

The posterior is computed by NumPy. Tensors of it are also available in graphs.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import tensorflow as tf

from .._arguments import Array
from .._tracing import numpy_function
from ..linalg.precision import checked
from .protocol import Latents, Q


class SparseWeights:
    """The posterior of the weights of all latent GPs, as arrays.

    :ivar factors: The factor of the precision P, for all outputs or for each.
    :ivar means: The mean of the weights, ``[M, P]``.
    """

    factors: Any
    means: Array

    def draw(self, rng: np.random.Generator, num_samples: int) -> Array:
        """Draw weights, ``[S, M, P]``, by one solve each."""
        size, count = self.means.shape
        noise = rng.standard_normal([count, size, num_samples])
        factors = self.factors * (count // len(self.factors))
        pairs = zip(factors, noise, strict=True)
        drawn: Array = np.stack([factor.solve(part, adjoint=True) for factor, part in pairs])
        drawn += self.means.T[..., None]
        return drawn.transpose(2, 1, 0)


class SparseQ(Q):
    """The posterior of many weights of all latent GPs, from tensors, also symbolic tensors.

    :param structure: The structure of the features.
    :ivar incomplete: Whether each feature's block leaves out a part of its kernel, in the order of
        the structure.
    """

    failure: ClassVar[str]
    """The message of the error that a precision cannot be factorised."""

    def __init__(self, sums: Any, latents: Latents, structure: Any) -> None:
        self.sums, self.latents, self._structure = sums, latents, structure
        self.incomplete = sums.features.incomplete[structure.order]
        first: Any = latents[0][0]
        self._inputs = first.prior_tensors(self.incomplete)
        self._start = len(self._inputs)  # of the latent GPs
        for collapsed, noise in cast("list[tuple[Any, Any]]", latents):
            self._inputs += [*collapsed.gram, collapsed.columns, noise]
        counts = [int(cast("Any", collapsed).columns.shape[1]) for collapsed, _ in latents]
        self._num_outputs, self._num_latents = sum(counts), len(latents)

    @abc.abstractmethod
    def _posterior_of(
        self, prior: Sequence[Array], latents: Sequence[tuple[list[Array], Array, Array]]
    ) -> Any:
        """The posterior as arrays, from the tensors of the prior, and G, the columns and the noise
        variance of each latent GP."""

    @abc.abstractmethod
    def _shapes(self) -> list[tuple[int, ...]]:
        """The shapes of :meth:`tensors`."""

    @cached_property
    def weights(self) -> Any:
        """The posterior as arrays, outside of graphs."""
        return self._solved(*(np.asarray(part) for part in self._inputs))

    def _solved(self, *arrays: Array) -> Any:
        prior, latent_arrays = arrays[: self._start], arrays[self._start :]
        size = len(latent_arrays) // self._num_latents
        parts = [latent_arrays[k : k + size] for k in range(0, len(latent_arrays), size)]
        return self._posterior_of(prior, [([*part[:-2]], part[-2], part[-1]) for part in parts])

    @property
    def means(self) -> Array:
        """The mean of the weights, ``[M, P]``."""
        means: Array = self.weights.means
        return means

    def kl(self) -> float:
        """The KL divergence from the prior, of all latent GPs."""
        return float(self.weights.kl())

    def is_finite(self) -> bool:
        """Whether the mean of all weights is finite."""
        return bool(np.all(np.isfinite(self.means)))

    def tensors(self) -> tuple[tf.Tensor, ...]:
        """The arrays of the posterior that predictions need, as tensors."""

        def compute(weights: Any) -> list[Array]:
            arrays: list[Array] = weights.arrays()
            return arrays

        return tuple(self._in_python(compute, [], self._shapes()))

    def covariances(self, features: tf.Tensor) -> tf.Tensor:
        """The change of the prior covariances between few rows with features ``[M, n]``, in the
        order of the structure, ``[L, n, n]``."""

        def compute(weights: Any, features: Array) -> list[Array]:
            return [weights.covariances(features)]

        count = features.shape[1]
        shape = self._num_latents, count, count
        (covariances,) = self._in_python(compute, [features], [shape])
        return covariances

    def _in_python(
        self,
        function: Callable[..., list[Array]],
        arguments: Sequence[tf.Tensor],
        shapes: Sequence[Sequence[Any]],
    ) -> list[tf.Tensor]:
        """The results of a function of the posterior and of arrays, also in a graph.

        :raises tf.errors.InvalidArgumentError: If a precision cannot be factorised.
        """
        if tf.executing_eagerly():
            found = function(self.weights, *(np.asarray(part) for part in arguments))
            return [tf.constant(part) for part in found]

        def compute(*arrays: Array) -> list[Array]:
            inputs, others = arrays[: len(self._inputs)], arrays[len(self._inputs) :]
            try:
                return [np.array(1.0), *function(self._solved(*inputs), *others)]
            except tf.errors.InvalidArgumentError:
                return [np.array(0.0)] * (1 + len(shapes))

        types, inputs = [tf.float64] * (1 + len(shapes)), [*self._inputs, *arguments]
        ok, *values = numpy_function(compute, inputs, types, stateful=False)
        return checked(ok, values, shapes, self.failure)
