"""The parts that a posterior is the sum of: their inducing variables, and their q.

A part is a batch of blocks of equal size (:class:`~interdomain.covariances.blocks.BlockBatch`): the
summands of an additive model, or all inducing variables of a stock model as one block. The algebra
is that of :mod:`interdomain.linalg.variational`.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.utilities import triangular

from ..covariances.blocks import BlockBatch
from ..devices import pinned
from ..linalg import Root, square_root
from ..linalg.variational import (
    Kept,
    Terms,
    Variational,
    Whitened,
    feature_terms,
    joint_feature_terms,
    kl_divergence,
    marginal_terms,
    whitened,
)


class Part(abc.ABC):
    """What some inducing variables contribute to f at new points.

    :ivar whole: Whether they explain all of their kernel's variance, which its own diagonal would
        compute from the same features: :meth:`terms` then have the variance itself.
    """

    whole: bool = False

    @abc.abstractmethod
    def terms(self, X: tf.Tensor) -> Terms:
        """To mean and variance at X ``[N, D]``."""

    @abc.abstractmethod
    def joint_terms(self, X: tf.Tensor, num_sets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """To the mean at X, the rows of B sets one behind the other, ``[B N, P]``, and to the
        covariance within each set ``[B, P, N, N]``."""


class TrainedPart(Part):
    """A part that a training step can be made of."""

    @abc.abstractmethod
    def terms_and_kl(self, X: tf.Tensor) -> tuple[Terms, tf.Tensor]:
        """And the KL divergence of the blocks' q, with one factorisation for both."""


class PartOfBatch(Part):
    """The part of a batch of blocks."""

    q: Whitened

    @abc.abstractmethod
    def features(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """``L^{-1} Kuf`` at X ``[N, D]``, and what the root of q's covariance multiplies."""

    def terms(self, X: tf.Tensor) -> Terms:
        return feature_terms(*self.features(X), self.q, whole=self.whole)

    def joint_terms(self, X: tf.Tensor, num_sets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return joint_feature_terms(*self.features(X), self.q, num_sets)


class FactorisedPart(PartOfBatch, TrainedPart):
    """A part whose Kuu is factorised now.

    :param batch: The blocks.
    :param q: Theirs.
    :param whiten: Whether q is that of whitened variables.
    :param whole: See :class:`Part`.
    """

    def __init__(self, batch: BlockBatch, q: Variational, whiten: bool, whole: bool) -> None:
        self._batch, self.whole = batch, whole
        self.root = batch_root(batch)
        self.q = Whitened(*q) if whiten else whitened(self.root, q)

    def features(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        A = self.root.solve(self._batch.features(X))
        return A, A if self.q.prior is None else self.root.solve(A, adjoint=True)

    def terms(self, X: tf.Tensor) -> Terms:
        return marginal_terms(self.root, self._batch.features(X), self.q, whole=self.whole)

    def terms_and_kl(self, X: tf.Tensor) -> tuple[Terms, tf.Tensor]:
        return self.terms(X), kl_divergence(self.q)


class PinnedPart(TrainedPart):
    """One block, with all of its operations on a device.

    :param make: Makes the part, there.
    :param device: Its name.
    :param whole: See :class:`Part`.
    """

    def __init__(self, make: Callable[[], FactorisedPart], device: str, whole: bool) -> None:
        self._make, self._device, self.whole = make, device, whole

    def terms(self, X: tf.Tensor) -> Terms:
        return Terms(*self._pinned(lambda X: tuple(self._make().terms(X)), X))

    def joint_terms(self, X: tf.Tensor, num_sets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        mean, change = self._pinned(lambda X: self._make().joint_terms(X, num_sets), X)
        return mean, change

    def terms_and_kl(self, X: tf.Tensor) -> tuple[Terms, tf.Tensor]:
        def of_part(X: tf.Tensor) -> tuple[tf.Tensor, ...]:
            terms, kl = self._make().terms_and_kl(X)
            return *terms, kl

        *terms, kl = self._pinned(of_part, X)
        return Terms(*terms), kl

    def _pinned(self, function: Callable[..., Any], X: tf.Tensor) -> Any:
        return pinned(function, self._device, X)


@dataclass(frozen=True)
class KeptPart(PartOfBatch):
    """A part from what a posterior has kept.

    :ivar batch: The blocks, for their features.
    :ivar kept: How to use the tensors.
    :ivar tensors: Of :meth:`interdomain.linalg.variational.Kept.of`.
    :ivar whole: See :class:`Part`.
    """

    batch: BlockBatch
    kept: Kept
    tensors: tuple[tf.Tensor, ...]
    whole: bool

    @property
    def q(self) -> Whitened:  # type: ignore[override]
        return self.kept.q(self.tensors)

    def features(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return self.kept.features(self.tensors, self.batch.features(X))


def batch_root(batch: BlockBatch) -> Root:
    """The factor of each block's Kuu, with GPflow's jitter where one is needed."""
    return square_root(batch.operator(default_jitter()))


def batch_kl(batch: BlockBatch, q: Variational, whiten: bool) -> tf.Tensor:
    """The KL divergence of the blocks' q; nothing is factorised if they are whitened."""
    return kl_divergence(Whitened(*q) if whiten else whitened(batch_root(batch), q))


def q_of_batch(batch: BlockBatch, q: Sequence[tuple[TensorType, TensorType | None]]) -> Variational:
    """The q of a batch's blocks, picked from those of all blocks.

    :param q: For each block a mean ``[m, P]``, and a root of the covariance ``[m, P]`` or
        ``[P, m, m]``, of which what is above the diagonal is left out, as GPflow does; or None for
        all.
    """
    means, roots = zip(*(q[position] for position in batch.positions), strict=True)
    mean = tf.stack([tf.convert_to_tensor(one) for one in means])
    return Variational(mean, None if roots[0] is None else stack_roots(roots))


def stack_roots(values: Sequence[TensorType]) -> tf.Tensor:
    """Roots of covariances, ``[T, m, P]`` or ``[T, P, m, m]`` without what is above the diagonal.

    Parameters that are triangular are filled in one go, so that a graph has one operation for each
    (its reading) and not twenty.
    """
    if len(values) > 1 and all(_is_triangular(value) for value in values):
        packed = tf.stack([value.unconstrained_variable for value in values])
        return triangular().forward(packed)
    stacked = tf.stack([tf.convert_to_tensor(value) for value in values])
    return stacked if stacked.shape.rank == 3 else tf.linalg.band_part(stacked, -1, 0)


def _is_triangular(value: TensorType) -> bool:
    return isinstance(value, gpflow.Parameter) and isinstance(value.transform, type(triangular()))
