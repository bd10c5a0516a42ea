"""The operator of a family that is added from outside: the covariance of a Markov chain.

The values of a Matern-1/2 process at increasing places are a Markov chain. The inverse of their
covariance is tridiagonal, and that of its Cholesky factor has two diagonals:

    (L^{-1} x)_i = (x_i - decay_i x_{i-1}) / deviation_i,

with ``decay_i = exp(-(t_i - t_{i-1}) / lengthscale)`` and the conditional standard deviations
``sqrt(variance (1 - decay_i^2))``. All that is asked of L costs a multiple of M for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from interdomain.linalg import Root, StructuredOperator


class MarkovChain(StructuredOperator):
    """The covariance of a stationary chain.

    :param decays: Correlations of neighbours ``[..., M - 1]``.
    :param variance: Of each value, ``[...]``.
    """

    def __init__(self, decays: tf.Tensor, variance: tf.Tensor) -> None:
        self.decays, self.variance = decays, variance
        super().__init__(
            dtype=decays.dtype,
            is_self_adjoint=True,
            is_positive_definite=True,
            is_square=True,
            parameters={"decays": decays, "variance": variance},
        )

    def _shape(self) -> tf.TensorShape:
        size = self.decays.shape[-1] + 1
        return self.decays.shape[:-1].concatenate([size, size])

    def _to_dense(self) -> tf.Tensor:
        """The product of the correlations between two values."""
        zero = tf.zeros_like(self.decays[..., :1])
        logs = tf.concat([zero, tf.cumsum(tf.math.log(self.decays), axis=-1)], axis=-1)
        gaps = tf.abs(logs[..., :, None] - logs[..., None, :])
        return self.variance[..., None, None] * tf.exp(-gaps)

    def _matmul(self, x: tf.Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> tf.Tensor:
        return tf.matmul(self._to_dense(), x, adjoint_b=adjoint_arg)

    def root(self) -> MarkovRoot:
        return MarkovRoot(self)

    def stacked_with(self, *others: MarkovChain) -> MarkovChain:
        """Chains of equal length."""
        chains = (self, *others)
        decays = tf.stack([chain.decays for chain in chains])
        return MarkovChain(decays, tf.stack([chain.variance for chain in chains]))

    def cast(self, dtype: tf.DType) -> MarkovChain:
        return MarkovChain(tf.cast(self.decays, dtype), tf.cast(self.variance, dtype))


class MarkovRoot(Root):
    """Its Cholesky factor."""

    def __init__(self, operator: MarkovChain) -> None:
        decays, variance = operator.decays, operator.variance[..., None]
        super().__init__(decays.shape[-1] + 1, decays.dtype)
        zero = tf.zeros_like(decays[..., :1])
        self._decays = tf.concat([zero, decays], axis=-1)
        self._deviations = tf.sqrt(variance * (1 - tf.square(self._decays)))

    def solve(self, columns: tf.Tensor, *, adjoint: bool = False) -> tf.Tensor:
        inverse, tensors = self.inverse()
        return inverse(tensors, columns, adjoint=adjoint)

    def log_determinant(self) -> tf.Tensor:
        return tf.reduce_sum(tf.math.log(self._deviations), axis=-1)

    def inverse(self) -> tuple[Callable[..., tf.Tensor], tuple[tf.Tensor, ...]]:
        return two_diagonals, (1 / self._deviations, self._decays / self._deviations)

    def inverse_diagonal(self) -> tf.Tensor:
        below = tf.square(self._decays / self._deviations)[..., 1:]
        padding = [*([[0, 0]] * (below.shape.rank - 1)), [0, 1]]
        return 1 / tf.square(self._deviations) + tf.pad(below, padding)


def two_diagonals(
    tensors: Sequence[tf.Tensor], columns: tf.Tensor, *, adjoint: bool = False
) -> tf.Tensor:
    """``(L^{-1} x)_i = a_i x_i - b_i x_{i-1}``."""
    columns = tf.convert_to_tensor(columns)
    a, b = (tensor[..., None] for tensor in tensors)
    if adjoint:
        return a * columns - _shifted((b * columns)[..., 1:, :], before=False)
    return a * columns - b * _shifted(columns[..., :-1, :], before=True)


def _shifted(rows: tf.Tensor, *, before: bool) -> tf.Tensor:
    return tf.pad(
        rows, [*([[0, 0]] * (rows.shape.rank - 2)), [int(before), int(not before)], [0, 0]]
    )
