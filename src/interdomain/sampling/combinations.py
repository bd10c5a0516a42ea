"""Functions drawn from priors that are made of others: sums, products, and what is linear in a
base function."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence

import tensorflow as tf
from gpflow.kernels import Kernel, Product, Sum

from ..covariances.pairs import pair_blocks
from ..inducing_variables import ProductInducingVariables
from ..inducing_variables.base import DecomposedInducingVariables
from ..inducing_variables.harmonic_points import ComponentInducingPoints
from ..inducing_variables.set_points import SetInducingVariables
from ..kernels import DecomposedKernel, SetKernel
from ..kernels._columns import select_columns, with_columns
from ..kernels.convolutional._located import LocatedKernel
from ..kernels.convolutional.channel_additive import ChannelKernel
from ..kernels.harmonic import HarmonicComponent
from .draws import Draws, constant
from .priors import PriorSample, prior_sample, project


class Sums(PriorSample):
    """Sums of independent functions.

    :param parts: One for each summand of the kernel.
    """

    def __init__(self, parts: Sequence[PriorSample]) -> None:
        self.parts = tuple(parts)

    @property
    def entries_per_row(self) -> int:
        return max(part.entries_per_row for part in self.parts)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.add_n([part(X) for part in self.parts])


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


class Products(PriorSample):
    """Sums of products of functions of the factors: ``sum_j prod_i f_ij / sqrt(F)``.

    :param parts: For each factor functions of one feature each, ``S F`` of them.
    :param draws: Of the products.
    """

    def __init__(self, parts: Sequence[PriorSample], draws: Draws) -> None:
        self.parts, self._draws = tuple(parts), draws

    @property
    def entries_per_row(self) -> int:
        return sum(part.entries_per_row for part in self.parts)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self.sums(functools.reduce(operator.mul, [part(X) for part in self.parts]))

    def sums(self, products: tf.Tensor) -> tf.Tensor:
        """From products ``[S F, N]`` to ``[S, N]``."""
        S, F = self._draws.shape
        by_function = tf.reshape(products, [S, F, tf.shape(products)[1]])
        return tf.reduce_sum(by_function, axis=1) / math.sqrt(F)


def _factors(kernels: Sequence[Kernel], draws: Draws) -> list[PriorSample]:
    """One factor has normal weights, which makes the products normal, given all else."""
    return [
        prior_sample(part, draws.of_factor(signs=place > 0)) for place, part in enumerate(kernels)
    ]


@prior_sample.register(Product)
def prior_sample_product(kernel: Product, draws: Draws) -> PriorSample:
    """Products of random features of the factors."""
    return Products(_factors(kernel.kernels, draws), draws)


@project.register(ProductInducingVariables, Product, Products)
def project_product(
    inducing_variable: ProductInducingVariables, kernel: Product, sample: Products
) -> tf.Tensor:
    """The products of what belongs to the factors' features, feature by feature."""
    triples = zip(inducing_variable.pairs(kernel), sample.parts, strict=True)
    features = [project(*pair, part) for pair, part in triples]
    members = inducing_variable.members.T
    chosen = [tf.gather(own, rows, axis=1) for own, rows in zip(features, members, strict=True)]
    return sample.sums(functools.reduce(operator.mul, chosen))


class OnColumns(PriorSample):
    """Functions of some columns.

    :param base: Of these.
    :param select: From X to them.
    """

    def __init__(self, base: PriorSample, select: Callable[[tf.Tensor], tf.Tensor]) -> None:
        self.base, self._select = base, select

    @property
    def entries_per_row(self) -> int:
        return self.base.entries_per_row

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self.base(self._select(X))


@prior_sample.register(ChannelKernel)
def prior_sample_channel(kernel: ChannelKernel, draws: Draws) -> PriorSample:
    """A function of the channel."""
    height, width, _ = kernel.parent.patch_shape
    base = prior_sample(kernel.channel_kernel, draws.on_columns(height * width))
    return OnColumns(base, lambda X: kernel.select(select_columns(kernel, X)))


@prior_sample.register(LocatedKernel)
def prior_sample_located(kernel: LocatedKernel, draws: Draws) -> PriorSample:
    """Products of random features of a patch and of its place."""
    size = kernel.patch_size
    patch, place = draws.on_columns(size).of_factor(signs=False), draws.on_columns(2)
    factors = [
        OnColumns(prior_sample(kernel.base_kernel, patch), lambda X: X[..., :size]),
        OnColumns(
            prior_sample(kernel.location_kernel, place.of_factor(signs=True)),
            lambda X: X[..., size:],
        ),
    ]
    return Products(factors, draws)


class SetSums(PriorSample):
    """Weighted sums of a base function over the points of an input.

    :param kernel: Which points, and their weights.
    :param base: The base functions.
    """

    def __init__(self, kernel: SetKernel, base: PriorSample) -> None:
        self.kernel, self.base = kernel, base

    @property
    def entries_per_row(self) -> int:
        return self.base.entries_per_row * int(self.kernel.point_weights.shape[0])

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        # All columns come here: active_dims may be a permutation of them.
        columns, _ = self.kernel.slice(X, None)
        points = self.kernel.points(with_columns(columns, self.kernel.input_dim))
        weights = self.kernel.point_weights
        flat = tf.reshape(points, [-1, points.shape[-1]])
        values = tf.reshape(self.base(flat), [-1, tf.shape(X)[0], weights.shape[0]])
        return tf.linalg.matvec(values, weights)


@prior_sample.register(SetKernel)
def prior_sample_set(kernel: SetKernel, draws: Draws) -> PriorSample:
    """Sums of a function drawn from the prior of the base function."""
    number = kernel.point_dim
    if number is None and draws.num_columns is not None:
        number = draws.count_columns(kernel)
    return SetSums(kernel, prior_sample(kernel.point_kernel, draws.on_columns(number)))


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

    :param kernel: The part.
    :param base: Functions drawn from the prior of the base kernel.
    """

    def __init__(self, kernel: HarmonicComponent, base: PriorSample) -> None:
        self.kernel, self.base = kernel, base

    @property
    def entries_per_row(self) -> int:
        return self.base.entries_per_row * int(self.kernel.parent.transform.order)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self.at_images(X, (0,) * len(self.kernel.parent.transform.orders))

    def at_images(self, X: tf.Tensor, shift: tuple[int, ...]) -> tf.Tensor:
        """At the images of X under the transformations, to the powers of ``shift``, ``[S, N]``."""
        parent = self.kernel.parent
        orbit = parent.transform.orbit(with_columns(X, parent.transform.input_dim))  # [T, N, D]
        values = self.base(tf.reshape(orbit, [-1, orbit.shape[-1]]))
        values = tf.reshape(values, [-1, tf.shape(orbit)[0], tf.shape(X)[0]])
        weights = constant(parent.orbit_weights(self.kernel.component, shift))
        return tf.einsum("stn,t->sn", values, weights)


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
        shifts = ((0,) * len(kernel.parent.transform.orders),)
    return tf.concat([sample.at_images(points, shift) for shift in shifts], axis=1)


@project.register(ComponentInducingPoints, SetKernel, SetSums)
def project_harmonic_set(
    inducing_variable: ComponentInducingPoints, kernel: SetKernel, sample: SetSums
) -> tf.Tensor:
    """Values of a part of the base function."""
    return project(inducing_variable, kernel.point_kernel, sample.base)
