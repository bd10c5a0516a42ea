"""Mean functions as linear functions of known columns, so that they are trained without data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gpflow
import tensorflow as tf
from gpflow.mean_functions import Constant, Linear, MeanFunction, Zero


@dataclass(frozen=True)
class MeanColumns:
    """A mean function as ``columns(X) @ weights()``; any other is subtracted from Y beforehand.

    :ivar kind: The name of the kind of columns, for messages and files.
    :ivar columns: A function of X ``[N, D]`` that returns ``[N, H]``.
    :ivar weights: A function that returns the weights ``[H, P]``.
    :ivar residual: Whether the mean itself is subtracted from Y: its parameters then count among
        those of the features.
    """

    kind: str
    columns: Callable[[tf.Tensor], tf.Tensor]
    weights: Callable[[], tf.Tensor]
    residual: bool = False

    def num_columns(self, input_dim: int) -> int:
        """The number H of columns, for X with ``input_dim``."""
        return input_dim + 1 if self.kind == "linear" else 1


def mean_columns(mean_function: MeanFunction, num_outputs: int) -> MeanColumns:
    """The columns of a mean function: ones for zero and constant means, X too for linear ones."""

    def no_weights() -> tf.Tensor:
        return tf.zeros([1, num_outputs], gpflow.default_float())

    if type(mean_function) is Zero:
        return MeanColumns("constant", _ones, no_weights)
    if type(mean_function) is Constant:
        return MeanColumns("constant", _ones, lambda: _rows(mean_function.c, 1, num_outputs))
    if type(mean_function) is Linear:
        return MeanColumns(
            "linear",
            lambda X: tf.concat([X, _ones(X)], axis=1),
            lambda: tf.concat(
                [
                    _rows(mean_function.A, mean_function.A.shape[0], num_outputs),
                    _rows(mean_function.b, 1, num_outputs),
                ],
                axis=0,
            ),
        )
    return MeanColumns(type(mean_function).__name__, _ones, no_weights, residual=True)


def _ones(X: tf.Tensor) -> tf.Tensor:
    return tf.ones_like(X[:, :1])


def _rows(values: gpflow.Parameter, num_rows: int, num_outputs: int) -> tf.Tensor:
    return tf.broadcast_to(tf.convert_to_tensor(values), [num_rows, num_outputs])
