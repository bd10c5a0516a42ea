"""Mean functions as weighted columns of rows, which can be trained without data."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.mean_functions import Constant, Linear, MeanFunction, Zero

from .._arguments import Array
from ..core.functional_rows import ActedMean, columns_of_mean


class MeanColumns:
    """A mean function as ``columns(X) @ weights()``, which can be trained without data. The columns
    are ones for zero and constant means, and X and ones for linear means. Any other mean function
    is subtracted from Y before rows are summed.

    :ivar kind: The name of the kind of columns, for messages and files.
    :ivar residual: Whether the mean is subtracted from Y; its parameters are then parameters of
        the features.
    """

    def __init__(self, mean_function: MeanFunction, num_outputs: int) -> None:
        is_acted, self._function = isinstance(mean_function, ActedMean), mean_function
        self._rows = mean_function.rows if is_acted else None
        self._mean = mean_function.mean_function if is_acted else mean_function
        self._num_outputs = num_outputs
        kind, known = type(self._mean), {Zero: "constant", Constant: "constant"}
        self.kind = (known | {Linear: "linear"}).get(kind, kind.__name__)
        self.residual = kind not in (Zero, Constant, Linear)

    @property
    def has_ones(self) -> bool:
        """Whether the last column is one at all rows. Functionals may map the constant one to other
        numbers."""
        return self._rows is None

    def last(self, X: Array) -> Array:
        """The last column at rows ``[N, D]``, ``[N, 1]`` in float64."""
        if self._rows is None:
            return np.ones([len(X), 1])
        rows = tf.constant(X, gpflow.default_float())
        return np.asarray(self._rows.of_ones(rows), np.float64)

    def validate(self, name: str, X: Array) -> None:
        """Check rows with functionals; a ValueError otherwise."""
        if self._rows is not None:
            self._rows.validate(name, X)

    def num_columns(self, input_dim: int) -> int:
        """The number H of columns, for X with ``input_dim``."""
        if self._rows is not None:
            input_dim = len(self._rows.seen_inputs(input_dim))
        return input_dim + 1 if self.kind == "linear" else 1

    def described(self, input_dim: int) -> dict[str, Any]:
        """The number of columns by name, if functionals act on the mean function."""
        if self._rows is None:
            return {}
        return {"columns of the mean function": self.num_columns(input_dim)}

    def rest(self, X: tf.Tensor) -> tf.Tensor:
        """The part of the mean at rows X ``[N, D]`` that has no columns, ``[N, P]`` or zero."""
        return self._function(X) if self.residual else tf.zeros([], X.dtype)

    def columns(self, X: tf.Tensor) -> tf.Tensor:
        """The columns at rows X ``[N, D]``, ``[N, H]``."""
        if self._rows is not None:
            return columns_of_mean(self._rows, X, linear=self.kind == "linear")
        ones = tf.ones_like(X[:, :1])
        return tf.concat([X, ones], axis=1) if self.kind == "linear" else ones

    def weights(self) -> tf.Tensor:
        """The weights, ``[H, P]``."""
        mean, size = self._mean, self._num_outputs
        if type(mean) is Linear:
            slopes = tf.broadcast_to(tf.convert_to_tensor(mean.A), [mean.A.shape[0], size])
            return tf.concat([slopes, tf.broadcast_to(mean.b, [1, size])], axis=0)
        if type(mean) is Constant:
            return tf.broadcast_to(tf.convert_to_tensor(mean.c), [1, size])
        return tf.zeros([1, size], gpflow.default_float())
