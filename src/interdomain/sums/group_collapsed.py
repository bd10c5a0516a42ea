"""The bound and q of intercepts of groups, of which G is diagonal: they are eliminated.

With ``B = [[A, C^T], [C, E]]`` for ``B = I + R^{-1} G R^{-T} / s``, A being diagonal, and the
targets ``t = R^{-1} Kuf (Y - m) / s``,

    log det B = log det A + log det S,    S = E - C A^{-1} C^T,
    |c|^2 = |A^{-1/2} t_1|^2 + |S^{-1/2} (t_2 - C A^{-1} t_1)|^2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from .._arguments import Array, BoolArray, IntArray
from ..linalg.precision import precision_mean, precision_terms
from .dense import Collapsed
from .protocol import Tensors


class GroupCollapsed(NamedTuple):
    """What the bound and q are made of, for diagonal Kuu: see :class:`.protocol.Collapsed`.

    :ivar dense: The same in dense matrices.
    :ivar start: The first of the features whose G is diagonal.
    :ivar end: The first after these.
    """

    dense: Collapsed
    start: int
    end: int

    def terms(self, noise_variance: tf.Tensor, *, refuse: bool = True) -> Tensors:
        """``log det B`` and ``|c|^2``; the features whose G is diagonal are eliminated."""
        parts = self._eliminated(noise_variance)
        log_determinant, fit = precision_terms(*parts.rest(), gram_gradient=True, refuse=refuse)
        log_determinant += tf.reduce_sum(tf.math.log(parts.diagonal))
        return log_determinant, fit + tf.reduce_sum(parts.half**2 / parts.diagonal[:, None])

    def _eliminated(self, noise_variance: tf.Tensor) -> _Eliminated:
        _, scale, gram, _, columns = self.dense
        first = np.arange(self.start, self.end)
        order = np.concatenate([first, np.delete(np.arange(columns.shape[0]), first)])
        of_first, of_rest = (tf.gather(scale, part) for part in np.split(order, [len(first)]))
        variances = tf.gather(tf.linalg.diag_part(gram), first)
        diagonal = 1 + variances * tf.square(of_first) / noise_variance
        rows = tf.gather(tf.gather(gram, order[len(first) :]), order, axis=1)
        rows *= tf.concat([of_first, of_rest], axis=0) * of_rest[:, None] / noise_variance
        border, corner = rows[:, : len(first)], rows[:, len(first) :]
        corner -= tf.matmul(border / diagonal, border, transpose_b=True)
        targets = tf.gather(scale[:, None] * columns / noise_variance, order)
        half, targets = targets[: len(first)], targets[len(first) :]
        targets -= tf.matmul(border, half / diagonal[:, None])
        return _Eliminated(order, diagonal, border, corner, half, targets)

    def explained_variance(self, incomplete: BoolArray) -> tf.Tensor:
        return self.dense.explained_variance(incomplete)

    def whitened_q(self, noise_variance: tf.Tensor) -> Tensors:
        return self.dense.whitened_q(noise_variance)

    def weights(self, noise_variance: tf.Tensor) -> Tensors:
        return self.dense.weights(noise_variance)

    def mean_of_weights(self, noise_variance: tf.Tensor) -> Array:
        parts = self._eliminated(noise_variance)
        rest = precision_mean(*parts.rest())
        first = parts.half - tf.matmul(parts.border, rest, transpose_a=True)
        mean = np.concatenate([first / parts.diagonal[:, None], rest])
        weights: Array = np.asarray(self.dense.scale)[:, None] * mean[np.argsort(parts.order)]
        return weights


class _Eliminated(NamedTuple):
    """What is left of B and of the targets ``t = R^{-1} columns / s`` after an elimination.

    :ivar order: The eliminated features, and the others.
    :ivar diagonal: A, its diagonal.
    :ivar border: C.
    :ivar corner: ``S - I``.
    :ivar half: ``t_1``.
    :ivar targets: ``t_2 - C A^{-1} t_1``.
    """

    order: IntArray
    diagonal: tf.Tensor
    border: tf.Tensor
    corner: tf.Tensor
    half: tf.Tensor
    targets: tf.Tensor

    def rest(self) -> tuple[tf.Tensor, ...]:
        """The arguments of functions of a precision for the other features."""
        one = tf.ones([], tf.float64)
        return tf.ones_like(self.targets[:, 0]), self.corner, self.targets, one
