"""Functions drawn from a GP prior, and the inducing variables of such functions.

There are two dispatchers. A family of kernels registers how functions are drawn from its prior; a
family of inducing variables registers how u is computed for such a function. Together they give
functions of a posterior (:mod:`interdomain.sampling.conditioning`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import NoReturn

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Polynomial, White
from gpflow.utilities import Dispatcher

from ..linalg.chunks import map_rows
from ..sphere._typing import Array

MOST_ENTRIES = 2**24
"""Numbers that are held at a time, at most."""


@dataclass(frozen=True)
class Draws:
    """The random number generator for drawing functions, and how many are drawn.

    :ivar rng: The generator.
    :ivar num_samples: The number S of functions.
    :ivar num_features: The number F of random features that each function is a sum of. Every
        function has features of its own, so that the covariance of functions has no bias, however
        few features there are.
    :ivar num_columns: The number of columns of X; None if it is not known. Some kernels do not
        know it themselves.
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
        lengthscales = getattr(kernel, "lengthscales", None)
        if lengthscales is not None and lengthscales.shape.rank:
            return int(lengthscales.shape[0])
        raise ValueError(
            f"input_dim must be given, as neither {type(kernel).__name__} nor its inducing "
            "variables say how many columns X has, found None; pass the number of columns."
        )


class PriorSample:
    """Functions drawn from a GP prior, to be evaluated anywhere.

    :param values: From X ``[N, D]``, with all columns, as ``kernel(X)`` takes them, to the values
        of all functions, ``[S, N]``.
    :param entries_per_row: How many numbers are held for each row of X.
    """

    def __init__(self, values: Callable[[tf.Tensor], tf.Tensor], entries_per_row: int) -> None:
        self._values, self.entries_per_row = values, entries_per_row

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all functions, ``[S, N]``."""
        return self._values(X)

    def by_rows(self, X: tf.Tensor) -> tf.Tensor:
        """The same values as a call, computed in batches of rows so that memory stays bounded."""
        chunk = max(1, MOST_ENTRIES // self.entries_per_row)
        return tf.transpose(map_rows(lambda rows: tf.transpose(self(rows)), X, [], chunk))


@singledispatch
def prior_sample(kernel: Kernel, draws: Draws) -> PriorSample:
    """Draw functions from the prior of a kernel of one output, with its present parameters.

    The mean over draws of ``f(x) f(x')`` is the kernel ``k(x, x')``: exactly, except for what the
    documentation of the family says. A family registers with ``prior_sample.register``.

    :param kernel: The kernel.
    :param draws: How many functions, of how many features each.
    :raises ValueError: For a kernel whose prior cannot be drawn from.
    """
    raise_unknown(kernel)


@prior_sample.register(Polynomial)  # which GPflow derives from Linear
def raise_unknown(kernel: Kernel, draws: Draws | None = None) -> NoReturn:
    """:raises ValueError: Always, with what to use."""
    raise ValueError(
        "kernel must be stationary, zonal, of finite rank or made of such kernels for functions to "
        f"be drawn from its prior, found {type(kernel).__name__}; wrap it with its features in a "
        "FiniteRank kernel, or draw values at given rows by model.predict_f_samples."
    )


@prior_sample.register(White)
def prior_sample_white(kernel: White, draws: Draws) -> NoReturn:
    """:raises ValueError: Always."""
    raise ValueError(
        "kernel: White is noise, independent at every point, of which no function of finite size "
        "can be drawn; leave it out of the kernel, and let the likelihood have the noise."
    )


project = Dispatcher("project")
project.__doc__ = """The inducing variables of functions drawn from the prior, ``[S, M]``.

``project(inducing_variable, kernel, sample)``, for a ``sample`` of the ``kernel``: the linear
functionals that u is, applied to each function. Raises ValueError for combinations whose
functionals are not known in closed form.
"""


@project.register(InducingVariables, Kernel, object)
def project_unknown(
    inducing_variable: InducingVariables, kernel: Kernel, sample: PriorSample
) -> NoReturn:
    """:raises ValueError: Always."""
    raise ValueError(
        f"inducing_variable: what {type(inducing_variable).__name__} are of functions drawn from "
        f"{type(kernel).__name__} (as {type(sample).__name__}) is not known in closed form; use "
        "the kernel's own features with a FiniteRank kernel, or points, or draw values at given "
        "rows by model.predict_f_samples."
    )


@project.register(InducingPoints, Kernel, object)
def project_points(
    inducing_variable: InducingPoints, kernel: Kernel, sample: PriorSample
) -> tf.Tensor:
    """Values at the points."""
    return sample.by_rows(tf.convert_to_tensor(inducing_variable.Z))


def constant(values: Array) -> tf.Tensor:
    """A tensor in ``gpflow.default_float()``."""
    return tf.constant(values, gpflow.default_float())


def as_array(value: TensorType) -> Array:
    """A parameter or a tensor as an array, in double precision."""
    return np.array(tf.convert_to_tensor(value), np.float64)
