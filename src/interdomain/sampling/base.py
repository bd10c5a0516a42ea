"""The base class of functions drawn from a prior, for any kernel."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array
from ..core.family import InterDomainInducingVariables, with_jitter
from ..core.functional_kernel import Functional
from ..linalg import Full, StructuredOperator
from ..linalg.chunks import map_rows

MOST_ENTRIES = 2**24
"""The largest number of values in memory at the same time."""


@dataclass(frozen=True)
class Draws:
    """The random number generator of draws, and the numbers of functions and features.

    :ivar num_samples: The number S of functions.
    :ivar num_features: The number F of random features in the sum of each function. Every function
        has its own features, so that the covariance of functions has no bias, even with few
        features.
    :ivar num_columns: The number of columns of X, which few kernels define; None if unknown.
    """

    rng: np.random.Generator
    num_samples: int
    num_features: int
    num_columns: int | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers ``(S, F)`` of functions and features."""
        return self.num_samples, self.num_features

    def count_columns(self, kernel: Kernel) -> int:
        """The number of columns of X that a kernel uses.

        :raises ValueError: If it depends on the number of columns of X, and that is unknown.
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
    """Functions drawn from the prior of a kernel of one output, which can be evaluated anywhere.

    :ivar entries_per_row: The number of values in memory for each row of X.
    """

    kernel: Any
    entries_per_row: int

    @abc.abstractmethod
    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all functions, ``[S, N]``, at X ``[N, D]`` with all of its columns."""

    def by_rows(self, X: TensorType) -> tf.Tensor:
        """The values of all functions, ``[S, N]``, in batches of rows that bound the memory."""
        X, chunk = tf.convert_to_tensor(X), max(1, MOST_ENTRIES // self.entries_per_row)
        return tf.transpose(map_rows(lambda rows: tf.transpose(self(rows)), X, [], chunk))

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """The inducing variables of the functions, ``[S, M]``: the linear functionals of u, applied
        to each function. A subclass adds the functionals that it supports besides points.

        :raises ValueError: If the functionals have no known closed form.
        """
        if isinstance(inducing_variable, InducingPoints):
            return self.by_rows(inducing_variable.Z)
        raise ValueError(
            f"inducing_variable: {type(inducing_variable).__name__} of functions drawn from "
            f"{type(self.kernel).__name__} have no known closed form; use the kernel's own "
            "features with a FiniteRank kernel, or points, or draw values at given rows by "
            "model.predict_f_samples."
        )


def unknown_prior(kernel: Kernel) -> ValueError:
    """The error for a kernel from whose prior no function can be drawn, with a remedy."""
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


class FunctionalPoints(InterDomainInducingVariables):
    """The functionals of f at rows, such as the data of an exact regression.

    :param X: Rows ``[M, D]`` of a :class:`interdomain.kernels.Functional` kernel.
    """

    kernels = (Functional,)

    def __init__(self, X: TensorType) -> None:
        super().__init__()
        self.X = tf.convert_to_tensor(X)

    @property
    def num_inducing(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    def num_columns(self, kernel: Functional) -> int:
        return int(self.X.shape[1])

    def Kuf(self, kernel: Functional, X: TensorType) -> tf.Tensor:
        return kernel(self.X, X)

    def Kuu(self, kernel: Functional, *, jitter: float = 0.0) -> StructuredOperator:
        return Full(with_jitter(kernel(self.X), jitter))


def points_of(X: TensorType, kernel: Kernel) -> InducingVariables:
    """The inducing variables that are the values of rows."""
    return FunctionalPoints(X) if isinstance(kernel, Functional) else InducingPoints(X)


@Kuf.register(FunctionalPoints, Functional, object)
def Kuf_functional_points(
    inducing_variable: FunctionalPoints, kernel: Functional, Xnew: TensorType
) -> tf.Tensor:
    """The covariances of rows with other rows."""
    return inducing_variable.Kuf(kernel, Xnew)
