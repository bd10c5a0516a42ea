"""Functions drawn from priors that are made of others or of given features: sums, finite ranks,
linear functions, and what is a sum of a base function over points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gpflow
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Linear, Sum

from ..covariances import Kuu_operator, Kvu
from ..covariances.pairs import pair_blocks
from ..inducing_variables import InterDomainInducingVariables
from ..inducing_variables.base import DecomposedInducingVariables
from ..inducing_variables.harmonic_points import ComponentInducingPoints
from ..inducing_variables.set_points import SetInducingVariables
from ..kernels import DecomposedKernel, FiniteRank, SetKernel
from ..kernels._columns import select_columns, with_columns
from ..kernels.convolutional.channel_additive import ChannelKernel
from ..kernels.harmonic import HarmonicComponent
from ..linalg import square_root
from .priors import Draws, PriorSample, as_array, constant, prior_sample, project, project_points


class Sums(PriorSample):
    """Sums of independent functions, one for each summand of a kernel."""

    def __init__(self, parts: Sequence[PriorSample]) -> None:
        entries = max(part.entries_per_row for part in parts)
        super().__init__(lambda X: tf.add_n([part(X) for part in parts]), entries)
        self.parts = parts


@prior_sample.register(Sum)
@prior_sample.register(DecomposedKernel)
def prior_sample_sum(kernel: Sum | DecomposedKernel, draws: Draws) -> PriorSample:
    """The sum of functions of the summands."""
    return Sums([prior_sample(part, draws) for part in kernel.kernels])


@project.register(DecomposedInducingVariables, (Sum, DecomposedKernel), Sums)
def project_sum(
    inducing_variable: DecomposedInducingVariables, kernel: Sum | DecomposedKernel, sample: Sums
) -> tf.Tensor:
    """Each block of its summand's function."""
    pair_blocks(inducing_variable, kernel)
    triples = zip(inducing_variable.inducing_variables, kernel.kernels, sample.parts, strict=True)
    return tf.concat([project(*one) for one in triples if one[0] is not None], axis=1)


@prior_sample.register(Linear)
def prior_sample_linear(kernel: Linear, draws: Draws) -> PriorSample:
    """A slope for each column."""
    slopes = draws.rng.standard_normal((draws.num_samples, draws.count_columns(kernel)))
    slopes = constant(slopes * as_array(kernel.variance) ** 0.5)

    def values(X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(slopes, select_columns(kernel, X), transpose_b=True)

    return PriorSample(values, draws.num_samples)


class FeatureSums(PriorSample):
    """``f(x) = sum_m w_m cov(u_m, f(x))`` for the features of a kernel and weights ``[S, M]``."""

    def __init__(self, kernel: FiniteRank, weights: tf.Tensor) -> None:
        super().__init__(
            lambda X: tf.matmul(weights, Kuf(kernel.inducing_variable, kernel, X)),
            sum(map(int, weights.shape)),
        )
        self.weights = weights


@prior_sample.register(FiniteRank)
def prior_sample_finite_rank(kernel: FiniteRank, draws: Draws) -> PriorSample:
    """``Kuu^{-1} u`` for u drawn from its prior. This is exact and needs no random features."""
    own = kernel.inducing_variable
    root = square_root(Kuu_operator(own, kernel, jitter=gpflow.config.default_jitter()))
    white = constant(draws.rng.standard_normal((int(own.num_inducing), draws.num_samples)))
    return FeatureSums(kernel, tf.transpose(root.solve(white, adjoint=True)))


@project.register((InterDomainInducingVariables, InducingPoints), FiniteRank, FeatureSums)
def project_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank, sample: FeatureSums
) -> tf.Tensor:
    """From their covariances with the kernel's own features; of other points, the values.

    :raises ValueError: If these covariances are not known.
    """
    own = kernel.inducing_variable
    if inducing_variable is own:
        covariance = Kuu_operator(own, kernel).to_dense()
    elif isinstance(inducing_variable, InducingPoints):
        return project_points(inducing_variable, kernel, sample)
    else:
        covariance = Kvu(inducing_variable, own, kernel)
    return tf.matmul(sample.weights, covariance, transpose_b=True)


@prior_sample.register(ChannelKernel)
def prior_sample_channel(kernel: ChannelKernel, draws: Draws) -> PriorSample:
    """A function of the channel."""
    height, width, _ = kernel.parent.patch_shape
    base = prior_sample(kernel.channel_kernel, replace(draws, num_columns=height * width))
    return PriorSample(
        lambda X: base(kernel.select(select_columns(kernel, X))), base.entries_per_row
    )


def _weighted(base: PriorSample, points: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Weighted sums ``[S, N]`` of the base function over points ``[N, P, D]``."""
    values = base(tf.reshape(points, [-1, points.shape[-1]]))
    values = tf.reshape(values, [-1, tf.shape(points)[0], weights.shape[0]])
    return tf.linalg.matvec(values, weights)


class SetSums(PriorSample):
    """Weighted sums of a base function over the points of an input, as the kernel has them."""

    def __init__(self, kernel: SetKernel, base: PriorSample) -> None:
        def values(X: tf.Tensor) -> tf.Tensor:
            # All columns come here: active_dims may be a permutation of them.
            columns, _ = kernel.slice(X, None)
            points = kernel.points(with_columns(columns, kernel.input_dim))
            return _weighted(base, points, tf.convert_to_tensor(kernel.point_weights))

        super().__init__(values, base.entries_per_row * int(kernel.point_weights.shape[0]))
        self.base = base


@prior_sample.register(SetKernel)
def prior_sample_set(kernel: SetKernel, draws: Draws) -> PriorSample:
    """Sums of a function drawn from the prior of the base function."""
    number = kernel.point_dim
    if number is None and draws.num_columns is not None:
        number = draws.count_columns(kernel)
    return SetSums(kernel, prior_sample(kernel.point_kernel, replace(draws, num_columns=number)))


@project.register(SetInducingVariables, SetKernel, SetSums)
def project_set(
    inducing_variable: SetInducingVariables, kernel: SetKernel, sample: SetSums
) -> tf.Tensor:
    """Values of the base function."""
    return sample.base.by_rows(inducing_variable.points(kernel))


class OrbitSums(PriorSample):
    """A part of a function under a group: a weighted sum over the orbit of its input.

    The weights are those of a projection, and the base kernel is invariant: so the covariance of
    the parts is the part of the kernel (Sun et al. 2021, section 3).
    """

    def __init__(self, kernel: HarmonicComponent, base: PriorSample) -> None:
        self._kernel, self._base = kernel, base
        transform = kernel.parent.transform
        self.unshifted = (0,) * len(transform.orders)
        entries = base.entries_per_row * int(transform.order)
        super().__init__(lambda X: self.at_images(X, self.unshifted), entries)

    def at_images(self, X: tf.Tensor, shift: tuple[int, ...]) -> tf.Tensor:
        """At the images of X under the transformations, to the powers of ``shift``, ``[S, N]``."""
        parent = self._kernel.parent
        orbit = parent.transform.orbit(with_columns(X, parent.transform.input_dim))  # [T, N, D]
        weights = constant(parent.orbit_weights(self._kernel.component, shift))
        return _weighted(self._base, tf.transpose(orbit, [1, 0, 2]), weights)


@prior_sample.register(HarmonicComponent)
def prior_sample_harmonic(kernel: HarmonicComponent, draws: Draws) -> PriorSample:
    """The part of a function drawn from the prior of the base kernel."""
    return OrbitSums(kernel, prior_sample(kernel.parent.transformed_kernel, draws))


@project.register(ComponentInducingPoints, HarmonicComponent, OrbitSums)
def project_harmonic(
    inducing_variable: ComponentInducingPoints, kernel: HarmonicComponent, sample: OrbitSums
) -> tf.Tensor:
    """Values at the points, and at their images."""
    points = inducing_variable.points([0])[0]
    shifts = kernel.parent.shifts(kernel.component)
    if inducing_variable.multiplicity == 1:
        shifts = (sample.unshifted,)
    return tf.concat([sample.at_images(points, shift) for shift in shifts], axis=1)


@project.register(ComponentInducingPoints, SetKernel, SetSums)
def project_harmonic_set(
    inducing_variable: ComponentInducingPoints, kernel: SetKernel, sample: SetSums
) -> tf.Tensor:
    """Values of a part of the base function."""
    return project(inducing_variable, kernel.point_kernel, sample.base)
