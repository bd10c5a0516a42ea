"""What functions drawn from a prior have in common, whatever the kernel."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array
from ..linalg.chunks import map_rows

MOST_ENTRIES = 2**24
"""Numbers that are held at a time, at most."""


@dataclass(frozen=True)
class Draws:
    """The random number generator for drawing functions, and how many are drawn.

    :ivar num_samples: The number S of functions.
    :ivar num_features: The number F of random features that each function is a sum of. Every
        function has features of its own, so that the covariance of functions has no bias, however
        few features there are.
    :ivar num_columns: The number of columns of X, which few kernels know; None if it is not known.
    """

    rng: np.random.Generator
    num_samples: int
    num_features: int
    num_columns: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """``(S, F)``."""
        return self.num_samples, self.num_features

    def count_columns(self, kernel: Kernel) -> int:
        """The number of columns that a kernel sees.

        :raises ValueError: If it depends on a number of columns of X that is not known.
        """
        dims = kernel.active_dims
        if not isinstance(dims, slice):
            return len(dims)
        if self.num_columns is not None:
            return len(range(*dims.indices(self.num_columns)))
        shape = np.shape(getattr(kernel, "lengthscales", 0.0))
        if len(shape):
            return int(shape[0])
        raise ValueError(
            f"input_dim must be given, as neither {type(kernel).__name__} nor its inducing "
            "variables say how many columns X has, found None; pass the number of columns."
        )


class PriorSample(abc.ABC):
    """Functions drawn from the prior of a kernel of one output, to be evaluated anywhere.

    :ivar entries_per_row: How many numbers are held for each row of X.
    """

    kernel: Any
    entries_per_row: int

    @abc.abstractmethod
    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all functions, ``[S, N]``, at X ``[N, D]`` with all of its columns."""

    def by_rows(self, X: TensorType) -> tf.Tensor:
        """The same values as a call, computed in batches of rows so that memory stays bounded."""
        X, chunk = tf.convert_to_tensor(X), max(1, MOST_ENTRIES // self.entries_per_row)
        return tf.transpose(map_rows(lambda rows: tf.transpose(self(rows)), X, [], chunk))

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """The inducing variables of the functions, ``[S, M]``: the linear functionals that u is,
        applied to each function. A subclass adds those that it knows to the points.

        :raises ValueError: If the functionals are not known in closed form.
        """
        if isinstance(inducing_variable, InducingPoints):
            return self.by_rows(inducing_variable.Z)
        raise ValueError(
            f"inducing_variable: what {type(inducing_variable).__name__} are of functions drawn "
            f"from {type(self.kernel).__name__} is not known in closed form; use the kernel's own "
            "features with a FiniteRank kernel, or points, or draw values at given rows by "
            "model.predict_f_samples."
        )


def unknown_prior(kernel: Kernel) -> ValueError:
    """The error for a kernel of whose prior no function can be drawn, with what to use."""
    return ValueError(
        "kernel must be stationary, zonal, of finite rank or made of such kernels for functions to "
        f"be drawn from its prior, found {type(kernel).__name__}; wrap it with its features in a "
        "FiniteRank kernel, or draw values at given rows by model.predict_f_samples. (White is "
        "noise, not a function: leave it to the likelihood.)"
    )


def constant(values: Array) -> tf.Tensor:
    """A tensor in ``gpflow.default_float()``."""
    return tf.constant(values, gpflow.default_float())


def as_array(value: TensorType) -> Array:
    """A parameter or a tensor as an array, in double precision."""
    return np.array(tf.convert_to_tensor(value), np.float64)
