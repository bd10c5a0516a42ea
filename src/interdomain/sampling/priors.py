"""Functions drawn from a GP prior: composite kernels, and the table of all supported kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Constant, Kernel, Linear, Polynomial, Product, Stationary, Sum

from ..core.columns import select_columns
from ..core.covariances import Kvu
from ..core.decomposed import DecomposedInducingVariables, DecomposedKernel, pair_blocks
from ..core.family import InterDomainInducingVariables
from ..core.finite_rank import FiniteRank
from ..core.functional_kernel import Functional
from ..core.pairs import Kuu_operator
from ..core.set_inducing_variables import SetInducingVariables
from ..core.set_kernel import SetKernel
from ..families.harmonic.decomposition import HarmonicComponent
from ..families.harmonic.points import ComponentInducingPoints
from ..families.harmonizable.spectral_mixture import SpectralComponent
from ..families.images.channel_additive import ChannelKernel
from ..families.sphere.kernel import ZonalKernel
from .base import Draws, FunctionalPoints, PriorSample, as_array, constant, unknown_prior
from .waves import Waves
from .zonal import Directions


def prior_sample(kernel: Kernel, draws: Draws) -> PriorSample:
    """Draw functions from the prior of a kernel of one output, with its present parameters.

    The mean over draws of ``f(x) f(x')`` is the kernel ``k(x, x')``. This is exact, except for the
    approximation that the docstring of the returned class describes.

    :raises ValueError: If no function can be drawn from the prior of the kernel.
    """
    for kinds, sample in _SAMPLES:
        if isinstance(kernel, kinds) and not isinstance(kernel, Polynomial):  # a Linear, in GPflow
            return sample(kernel, draws)
    raise unknown_prior(kernel)


class Sums(PriorSample):
    """Sums of independent functions, one for each summand of a kernel."""

    def __init__(self, kernel: Sum | DecomposedKernel, draws: Draws) -> None:
        self.kernel = kernel
        self.parts = [prior_sample(part, draws) for part in kernel.kernels]
        self.entries_per_row = max(part.entries_per_row for part in self.parts)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.add_n([part(X) for part in self.parts])

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """The inducing variables of each block, from the function of its summand."""
        if not isinstance(inducing_variable, DecomposedInducingVariables):
            return super().project(inducing_variable)
        pair_blocks(inducing_variable, self.kernel)
        pairs = zip(inducing_variable.inducing_variables, self.parts, strict=True)
        return tf.concat([part.project(block) for block, part in pairs if block is not None], 1)


class Acted(PriorSample):
    """Functionals of functions of a prior. Inducing variables belong to the functions, unless they
    are rows of functionals."""

    def __init__(self, kernel: Functional, draws: Draws) -> None:
        columns = draws.num_columns
        columns = None if columns is None else len(kernel.rows.seen_inputs(columns))
        self.kernel, self._size = kernel, draws.num_samples
        self._inner = prior_sample(kernel.prior, replace(draws, num_columns=columns))
        self.entries_per_row = self._inner.entries_per_row

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        def values(inputs: tf.Tensor) -> tf.Tensor:
            return tf.transpose(self._inner(inputs))

        return tf.transpose(self.kernel.rows.act(values, X, self._size))

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """The inducing variables of the functions, or the values of rows."""
        if isinstance(inducing_variable, FunctionalPoints):
            return self.by_rows(inducing_variable.X)
        return self._inner.project(inducing_variable)


class Slopes(PriorSample):
    """Linear functions, with a random slope for each column."""

    def __init__(self, kernel: Linear, draws: Draws) -> None:
        self.kernel, self.entries_per_row = kernel, draws.num_samples
        slopes = draws.rng.standard_normal((draws.num_samples, draws.count_columns(kernel)))
        self._slopes = constant(slopes * as_array(kernel.variance) ** 0.5)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self._slopes, select_columns(self.kernel, X), transpose_b=True)


class FeatureSums(PriorSample):
    """``f(x) = sum_m w_m cov(u_m, f(x))`` for the features of a kernel, where ``w = Kuu^{-1} u``
    and u is drawn from its prior. This is exact and needs no random features."""

    def __init__(self, kernel: FiniteRank, draws: Draws) -> None:
        features, self.kernel = kernel.inducing_variable, kernel
        root = Kuu_operator(features, kernel, jitter=gpflow.config.default_jitter()).root()
        white = constant(draws.rng.standard_normal((int(features.num_inducing), draws.num_samples)))
        self._weights = tf.transpose(root.solve(white, adjoint=True))  # [S, M]
        self.entries_per_row = sum(map(int, self._weights.shape))

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self._weights, Kuf(self.kernel.inducing_variable, self.kernel, X))

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """The features ``inducing_variable``, a subset of the kernel's features."""
        features = self.kernel.inducing_variable
        if not isinstance(inducing_variable, InterDomainInducingVariables):
            return super().project(inducing_variable)
        if inducing_variable is features:
            covariance = Kuu_operator(features, self.kernel).to_dense()
        else:
            covariance = Kvu(inducing_variable, features, self.kernel)
        return tf.matmul(self._weights, covariance, transpose_b=True)


class PointSums(PriorSample):
    """Weighted sums of a function g over points of an input: ``f(x) = sum_p w_p g(x_p)``.

    :param kernel: The kernel of f; ``base`` is the function g, and ``weights`` are ``[P]``.
    :param points: A function from the active columns of X ``[N, D]`` to points ``[N, P, E]``.
    """

    def __init__(
        self,
        kernel: Kernel,
        base: PriorSample,
        points: Callable[[tf.Tensor], tf.Tensor],
        weights: TensorType,
    ) -> None:
        self.kernel, self._base, self._points = kernel, base, points
        self._weights = tf.convert_to_tensor(weights)
        self.entries_per_row = base.entries_per_row * int(self._weights.shape[0])

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self._sums(self.kernel.seen(X), self._weights)

    def _sums(self, X: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        points = self._points(X)
        values = self._base(tf.reshape(points, [-1, points.shape[-1]]))
        values = tf.reshape(values, [-1, tf.shape(points)[0], weights.shape[0]])
        return tf.linalg.matvec(values, weights)

    def project(self, inducing_variable: InducingVariables) -> tf.Tensor:
        """Values of g; or, for a part of a function under a group, at points and their images."""
        kernel = self.kernel
        if isinstance(inducing_variable, SetInducingVariables):
            return self._base.by_rows(inducing_variable.points(kernel))
        if not isinstance(inducing_variable, ComponentInducingPoints):
            return super().project(inducing_variable)
        if not isinstance(kernel, HarmonicComponent):  # a sum over points of a harmonic component
            return self._base.project(inducing_variable)
        parent, component = kernel.parent, kernel.component
        shifts = parent.shifts(component)[: inducing_variable.multiplicity]
        weights = [constant(parent.orbit_weights(component, shift)) for shift in shifts]
        points = inducing_variable.points([0])[0]
        return tf.concat([self._sums(points, shift_weights) for shift_weights in weights], axis=1)


def _seen_columns(kernel: Kernel, draws: Draws) -> int | None:
    """The number of columns that a kernel selects from those of X; None if it is unknown."""
    return None if draws.num_columns is None else draws.count_columns(kernel)


def _over_points(kernel: SetKernel, draws: Draws) -> PointSums:
    """Sums of a base function over the points of an input of a set kernel."""
    number = kernel.point_dim or _seen_columns(kernel, draws)
    base = prior_sample(kernel.point_kernel, replace(draws, num_columns=number))
    return PointSums(kernel, base, kernel.points, kernel.point_weights)


def _over_orbits(kernel: HarmonicComponent, draws: Draws) -> PointSums:
    """The part of a function under a group: a weighted sum over the orbit of its input.

    The weights are those of a projection, and the base kernel is invariant. The covariance of the
    parts is therefore the part of the kernel (Sun et al. 2021, section 3).
    """
    transform = kernel.parent.transform

    def orbit(X: tf.Tensor) -> tf.Tensor:
        return tf.transpose(transform.orbit(X), [1, 0, 2])

    number = _seen_columns(kernel, draws)
    base = prior_sample(kernel.parent.transformed_kernel, replace(draws, num_columns=number))
    return PointSums(kernel, base, orbit, constant(kernel.weights))


def _over_channel(kernel: ChannelKernel, draws: Draws) -> PointSums:
    """Functions of one channel, which is the only point of the sum."""
    height, width, _ = kernel.parent.patch_shape
    base = prior_sample(kernel.channel_kernel, replace(draws, num_columns=height * width))

    def channel(X: tf.Tensor) -> tf.Tensor:
        return kernel.select(X)[:, None]

    return PointSums(kernel, base, channel, tf.ones([1], gpflow.default_float()))


_SAMPLES: tuple[tuple[tuple[type, ...], Callable[..., PriorSample]], ...] = (
    ((Functional,), Acted),
    ((FiniteRank,), FeatureSums),
    ((Sum, DecomposedKernel), Sums),
    ((ZonalKernel,), Directions),
    ((Stationary, SpectralComponent, Constant, Product), Waves.from_kernel),
    ((SetKernel,), _over_points),
    ((HarmonicComponent,), _over_orbits),
    ((ChannelKernel,), _over_channel),
    ((Linear,), Slopes),
)
"""The function or class that draws from the prior, for each class of kernels."""
