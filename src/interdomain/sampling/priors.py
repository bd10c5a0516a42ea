"""Functions drawn from a GP prior, and what inducing variables are of them.

A family of kernels registers with :func:`prior_sample` how functions are drawn from its prior, as
a :class:`PriorSample`. Here are those of kernels that are made of others or of given features.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from functools import singledispatch, singledispatchmethod
from typing import Any, NoReturn

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Linear, Polynomial, Sum, White

from .._arguments import Array
from ..core.columns import select_columns, with_columns
from ..core.covariances import Kvu
from ..core.decomposed import DecomposedKernel
from ..core.family import DecomposedInducingVariables, InterDomainInducingVariables, pair_blocks
from ..core.finite_rank import FiniteRank, Kuu_operator
from ..core.set_kernel import SetKernel
from ..core.set_points import SetInducingVariables
from ..families.harmonic.decomposition import HarmonicComponent
from ..families.harmonic.points import ComponentInducingPoints
from ..families.images.channel_additive import ChannelKernel
from ..linalg.chunks import map_rows

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


class PriorSample(abc.ABC):
    """Functions drawn from the prior of a kernel of one output, to be evaluated anywhere.

    :ivar kernel: The kernel.
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

    @singledispatchmethod
    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """The inducing variables of the functions, ``[S, M]``: the linear functionals that u is,
        applied to each function. A family registers its own beside points, which all have.

        :raises ValueError: If the functionals are not known in closed form.
        """
        raise ValueError(
            f"inducing_variable: what {type(inducing_variable).__name__} are of functions drawn "
            f"from {type(self.kernel).__name__} (as {type(self).__name__}) is not known in closed "
            "form; use the kernel's own features with a FiniteRank kernel, or points, or draw "
            "values at given rows by model.predict_f_samples."
        )

    @project.register(InducingPoints)
    def _points(self, inducing_variable: InducingPoints) -> tf.Tensor:
        return self.by_rows(inducing_variable.Z)


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


@prior_sample.register(Sum)
@prior_sample.register(DecomposedKernel)
class Sums(PriorSample):
    """Sums of independent functions, one for each summand of a kernel."""

    def __init__(self, kernel: Sum | DecomposedKernel, draws: Draws) -> None:
        self.kernel = kernel
        self.parts = [prior_sample(part, draws) for part in kernel.kernels]
        self.entries_per_row = max(part.entries_per_row for part in self.parts)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.add_n([part(X) for part in self.parts])

    @singledispatchmethod
    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        return super().project(inducing_variable)

    @project.register(DecomposedInducingVariables)
    def _blocks(self, inducing_variable: DecomposedInducingVariables) -> tf.Tensor:
        """Each of its summand's function."""
        pair_blocks(inducing_variable, self.kernel)
        pairs = zip(inducing_variable.inducing_variables, self.parts, strict=True)
        return tf.concat([part.project(own) for own, part in pairs if own is not None], axis=1)


@prior_sample.register(Linear)
class Slopes(PriorSample):
    """A slope for each column."""

    def __init__(self, kernel: Linear, draws: Draws) -> None:
        self.kernel, self.entries_per_row = kernel, draws.num_samples
        slopes = draws.rng.standard_normal((draws.num_samples, draws.count_columns(kernel)))
        self._slopes = constant(slopes * as_array(kernel.variance) ** 0.5)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self._slopes, select_columns(self.kernel, X), transpose_b=True)


@prior_sample.register(FiniteRank)
class FeatureSums(PriorSample):
    """``f(x) = sum_m w_m cov(u_m, f(x))`` for the features of a kernel, with ``w = Kuu^{-1} u`` for
    u drawn from its prior. This is exact and needs no random features."""

    def __init__(self, kernel: FiniteRank, draws: Draws) -> None:
        own, self.kernel = kernel.inducing_variable, kernel
        root = Kuu_operator(own, kernel, jitter=gpflow.config.default_jitter()).root()
        white = constant(draws.rng.standard_normal((int(own.num_inducing), draws.num_samples)))
        self._weights = tf.transpose(root.solve(white, adjoint=True))  # [S, M]
        self.entries_per_row = sum(map(int, self._weights.shape))

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self._weights, Kuf(self.kernel.inducing_variable, self.kernel, X))

    @singledispatchmethod
    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        return super().project(inducing_variable)

    @project.register(InterDomainInducingVariables)
    def _features(self, inducing_variable: InterDomainInducingVariables) -> tf.Tensor:
        """From their covariances with the kernel's own.

        :raises ValueError: If these covariances are not known.
        """
        own = self.kernel.inducing_variable
        if inducing_variable is own:
            covariance = Kuu_operator(own, self.kernel).to_dense()
        else:
            covariance = Kvu(inducing_variable, own, self.kernel)
        return tf.matmul(self._weights, covariance, transpose_b=True)


@prior_sample.register(ChannelKernel)
class OfChannel(PriorSample):
    """Functions of a channel."""

    def __init__(self, kernel: ChannelKernel, draws: Draws) -> None:
        height, width, _ = kernel.parent.patch_shape
        self.kernel = kernel
        self._base = prior_sample(kernel.channel_kernel, replace(draws, num_columns=height * width))
        self.entries_per_row = self._base.entries_per_row

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self._base(self.kernel.select(select_columns(self.kernel, X)))


def _weighted(base: PriorSample, points: tf.Tensor, weights: TensorType) -> tf.Tensor:
    """Weighted sums ``[S, N]`` of the base function over points ``[N, P, D]``."""
    values = base(tf.reshape(points, [-1, points.shape[-1]]))
    values = tf.reshape(values, [-1, tf.shape(points)[0], weights.shape[0]])
    return tf.linalg.matvec(values, weights)


@prior_sample.register(SetKernel)
class SetSums(PriorSample):
    """Weighted sums of a base function over the points of an input, as the kernel has them."""

    def __init__(self, kernel: SetKernel, draws: Draws) -> None:
        number = kernel.point_dim
        if number is None and draws.num_columns is not None:
            number = draws.count_columns(kernel)
        self.kernel = kernel
        self._base = prior_sample(kernel.point_kernel, replace(draws, num_columns=number))
        self.entries_per_row = self._base.entries_per_row * int(kernel.point_weights.shape[0])

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        # All columns come here: active_dims may be a permutation of them.
        columns, _ = self.kernel.slice(X, None)
        points = self.kernel.points(with_columns(columns, self.kernel.input_dim))
        return _weighted(self._base, points, tf.convert_to_tensor(self.kernel.point_weights))

    @singledispatchmethod
    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        return super().project(inducing_variable)

    @project.register(SetInducingVariables)
    def _points(self, inducing_variable: SetInducingVariables) -> tf.Tensor:
        """Values of the base function."""
        return self._base.by_rows(inducing_variable.points(self.kernel))

    @project.register(ComponentInducingPoints)
    def _part(self, inducing_variable: ComponentInducingPoints) -> tf.Tensor:
        """Values of a part of the base function."""
        return self._base.project(inducing_variable)


@prior_sample.register(HarmonicComponent)
class OrbitSums(PriorSample):
    """The part of a function under a group: a weighted sum over the orbit of its input.

    The weights are those of a projection, and the base kernel is invariant: so the covariance of
    the parts is the part of the kernel (Sun et al. 2021, section 3).
    """

    def __init__(self, kernel: HarmonicComponent, draws: Draws) -> None:
        transform = kernel.parent.transform
        self.kernel, self._unshifted = kernel, (0,) * len(transform.orders)
        self._base = prior_sample(kernel.parent.transformed_kernel, draws)
        self.entries_per_row = self._base.entries_per_row * int(transform.order)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self._at_images(X, self._unshifted)

    def _at_images(self, X: tf.Tensor, shift: tuple[int, ...]) -> tf.Tensor:
        """At the images of X under the transformations, to the powers of ``shift``, ``[S, N]``."""
        parent = self.kernel.parent
        orbit = parent.transform.orbit(with_columns(X, parent.transform.input_dim))  # [T, N, D]
        weights = constant(parent.orbit_weights(self.kernel.component, shift))
        return _weighted(self._base, tf.transpose(orbit, [1, 0, 2]), weights)

    @singledispatchmethod
    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        return super().project(inducing_variable)

    @project.register(ComponentInducingPoints)
    def _points(self, inducing_variable: ComponentInducingPoints) -> tf.Tensor:
        """Values at the points, and at their images."""
        shifts = self.kernel.parent.shifts(self.kernel.component)
        if inducing_variable.multiplicity == 1:
            shifts = (self._unshifted,)
        points = inducing_variable.points([0])[0]
        return tf.concat([self._at_images(points, shift) for shift in shifts], axis=1)


def constant(values: Array) -> tf.Tensor:
    """A tensor in ``gpflow.default_float()``."""
    return tf.constant(values, gpflow.default_float())


def as_array(value: TensorType) -> Array:
    """A parameter or a tensor as an array, in double precision."""
    return np.array(tf.convert_to_tensor(value), np.float64)
