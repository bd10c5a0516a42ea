"""The parts whose sum is a posterior: their inducing variables, and their q.

A part is a batch of blocks of equal size (:class:`~interdomain.core.family.BlockBatch`): the
summands of an additive model, or all inducing variables of a stock model as one block. The algebra
is in :mod:`interdomain.linalg.variational`.
"""

from __future__ import annotations

import abc
import functools
import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.utilities import triangular

from ..core.family import BlockBatch
from ..devices import pinned
from ..linalg import Root
from ..linalg.variational import (
    KeptQ,
    Terms,
    Whitened,
    feature_terms,
    joint_feature_terms,
    kl_divergence,
    marginal_terms,
    whitened,
)

TensorQ: TypeAlias = tuple[tf.Tensor, tf.Tensor | None]


class Part(abc.ABC):
    """The contribution of some inducing variables to f at new points.

    :ivar is_complete: Whether they explain the whole variance of their kernel, whose diagonal would
        need the same features. :meth:`terms` then contain the variance itself.
    """

    is_complete: bool = False

    @abc.abstractmethod
    def terms(self, X: tf.Tensor) -> Terms:
        """The contributions to mean and variance at X ``[N, D]``."""

    @abc.abstractmethod
    def joint_terms(self, X: tf.Tensor, num_sets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The contributions to the mean at X, ``[B N, P]``, and to the covariance within each set,
        ``[B, P, N, N]``. X holds the rows of B sets, set by set."""

    @abc.abstractmethod
    def kl(self) -> tf.Tensor:
        """The KL divergence of all q; whitened q need no factorisation."""

    @abc.abstractmethod
    def terms_and_kl(self, X: tf.Tensor, explained: bool = False) -> tuple[Terms, tf.Tensor]:
        """The results of :meth:`terms` and :meth:`kl`, with one factorisation for both.

        :param explained: Whether ``Terms.explained`` needs a gradient.
        """


class FeaturePart(Part):
    """A part with one or two sets of whitened features.

    :ivar q: The q of each set.
    """

    q: Sequence[Whitened]

    @abc.abstractmethod
    def features(self, X: tf.Tensor) -> Sequence[tf.Tensor]:
        """The features ``L^{-1} Kuf`` of each set at X ``[N, D]``."""

    def terms_of_sets(self, X: tf.Tensor) -> list[Terms]:
        """The terms of each set."""
        pairs = zip(self.features(X), self.q, strict=True)
        return [feature_terms(A, q, is_complete=self.is_complete) for A, q in pairs]

    def terms(self, X: tf.Tensor) -> Terms:
        return functools.reduce(Terms.plus, self.terms_of_sets(X))

    def joint_terms(self, X: tf.Tensor, num_sets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pairs = zip(self.features(X), self.q, strict=True)
        means, changes = zip(*(joint_feature_terms(A, q, num_sets) for A, q in pairs), strict=True)
        return functools.reduce(operator.add, means), functools.reduce(operator.add, changes)

    def kl(self) -> tf.Tensor:
        return functools.reduce(operator.add, map(kl_divergence, self.q))

    def terms_and_kl(self, X: tf.Tensor, explained: bool = False) -> tuple[Terms, tf.Tensor]:
        return FeaturePart.terms(self, X) if explained else self.terms(X), self.kl()


class FactorisedPart(FeaturePart):
    """A part whose Kuu is factorised now.

    :param batch: The blocks.
    :param q: The mean of q, and the root of its covariance.
    :param whiten: Whether q is over whitened variables.
    :param is_complete: See :class:`Part`.
    """

    def __init__(self, batch: BlockBatch, q: TensorQ, whiten: bool, is_complete: bool) -> None:
        self._batch, self.is_complete = batch, is_complete
        self.q = [Whitened(*q) if whiten else whitened(self.root, *q)]

    @functools.cached_property
    def root(self) -> Root:
        """The factor of Kuu."""
        return batch_root(self._batch)

    def features(self, X: tf.Tensor) -> list[tf.Tensor]:
        return [self.root.solve(self._batch.features(X))]

    def terms(self, X: tf.Tensor) -> Terms:
        columns = self._batch.features(X)
        return marginal_terms(self.root, columns, *self.q, is_complete=self.is_complete)


class PinnedPart(Part):
    """One block, whose operations all run on one device.

    :param make: Makes the part, on the device.
    :param device: The name of the device.
    :param is_complete: See :class:`Part`.
    """

    def __init__(self, make: Callable[[], FactorisedPart], device: str, is_complete: bool) -> None:
        self._make, self._device, self.is_complete = make, device, is_complete

    def terms(self, X: tf.Tensor) -> Terms:
        return Terms(*pinned(lambda X: tuple(self._make().terms(X)), self._device, X))

    def joint_terms(self, X: tf.Tensor, num_sets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mean, change = pinned(lambda X: self._make().joint_terms(X, num_sets), self._device, X)
        return mean, change

    def kl(self) -> tf.Tensor:
        return pinned(lambda: (self._make().kl(),), self._device)[0]

    def terms_and_kl(self, X: tf.Tensor, explained: bool = False) -> tuple[Terms, tf.Tensor]:
        def compute(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
            terms, kl = self._make().terms_and_kl(X, explained)
            return *terms, kl

        *terms, kl = pinned(compute, self._device, X)
        return Terms(*terms), kl


class KeptPart(FeaturePart):
    """A part that is built from the cache of a posterior.

    :param batch: The blocks, for their features.
    :param kept: The cached root and q of the blocks.
    :param is_complete: See :class:`Part`.
    """

    def __init__(self, batch: BlockBatch, kept: KeptQ, is_complete: bool) -> None:
        self._batch, self._root, self.q, self.is_complete = batch, kept.root, [kept.q], is_complete

    def features(self, X: tf.Tensor) -> list[tf.Tensor]:
        return [self._root.solve(self._batch.features(X))]


def batch_root(batch: BlockBatch) -> Root:
    """The factor of each block's Kuu, with GPflow's jitter if it is needed."""
    return batch.operator(default_jitter()).root()


def q_of_batch(batch: BlockBatch, q: Sequence[tuple[TensorType, TensorType | None]]) -> TensorQ:
    """The q of a batch's blocks, selected from the q of all blocks.

    :param q: For each block a mean ``[m, P]``, and a root of the covariance ``[m, P]`` or
        ``[P, m, m]``; or None for all blocks. As in GPflow, only the lower triangle of a matrix is
        used.
    """
    means, roots = zip(*(q[position] for position in batch.positions), strict=True)
    mean = tf.stack([tf.convert_to_tensor(block_mean) for block_mean in means])
    return mean, None if roots[0] is None else stack_roots(roots)


def stack_roots(values: Sequence[TensorType]) -> tf.Tensor:
    """Roots of covariances, ``[T, m, P]``, or ``[T, P, m, m]`` with only the lower triangle.

    Parameters with a triangular transform are filled together, so that a graph has one operation
    for each parameter (its reading) instead of twenty.
    """
    if len(values) > 1 and all(
        isinstance(getattr(value, "transform", None), type(triangular())) for value in values
    ):
        packed = tf.stack([value.unconstrained_variable for value in values])
        return triangular().forward(packed)
    stacked = tf.stack([tf.convert_to_tensor(value) for value in values])
    return stacked if stacked.shape.rank == 3 else tf.linalg.band_part(stacked, -1, 0)
