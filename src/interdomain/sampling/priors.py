"""Functions drawn from a GP prior, and the inducing variables of such functions.

There are two dispatchers. A family of kernels registers how functions are drawn from its prior; a
family of inducing variables registers how u is computed for such a function. Together they give
functions of a posterior (:mod:`interdomain.sampling.conditioning`).
"""

from __future__ import annotations

import abc
from functools import singledispatch
from typing import NoReturn

import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Polynomial, White
from gpflow.utilities import Dispatcher

from ..linalg.chunks import map_rows
from .draws import Draws

MOST_ENTRIES = 2**24
"""Numbers that are held at a time, at most."""


class PriorSample(abc.ABC):
    """Functions drawn from a GP prior: sums of a fixed number of features, to be evaluated
    anywhere."""

    @abc.abstractmethod
    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """The values of all functions, ``[S, N]``.

        :param X: ``[N, D]``, with all columns, as ``kernel(X)`` takes them.
        """

    @property
    @abc.abstractmethod
    def entries_per_row(self) -> int:
        """How many numbers are held for each row of X."""

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
