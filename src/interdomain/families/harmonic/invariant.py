"""Kernels of functions that are invariant to a group of transformations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.kernels import Kernel

from ..._arguments import as_integer
from ...core.parameters import single_output
from ...core.point_sums import cross_sums, quadratic_sums
from ...core.set_kernel import SetKernel, mean_weights
from .transforms.base import CyclicTransform
from .transforms.product import Product


class Invariant(SetKernel):
    """The mean of a function g over the orbit of its input under a group.

    ``f(x) = 1/T sum_s g(G^s x)``, ``g ~ GP(0, k_g)``, over the T elements of the group (van der
    Wilk et al., *Convolutional Gaussian Processes*, 2017, Appendix D, eqs. D.29 and D.30; there
    the sum over the points of the orbit, each once, without 1/T). Every sample of f has
    ``f(G x) = f(x)``, whatever k_g is. Inducing variables are values of g:
    :class:`interdomain.inducing_variables.OrbitInducingPoints`.

    If k_g itself does not change when both its inputs are transformed, this is the first part of
    ``HarmonicKernel(base_kernel, transforms)``, whose variances take T evaluations instead of T^2.

    **Sampled orbits.** With ``num_samples`` each use draws that many of the T elements, without
    replacement and for each input anew. The covariances with inducing variables and the variances
    of f are then unbiased estimates, which are exact where ``num_samples`` is T; ``K`` between
    points is always that of whole orbits. So is the predictive mean and the part of the predictive
    variance that comes from the prior; what is quadratic in the covariances with u is not: the
    expectation of ``k_u k_u^T`` exceeds the exact one by the covariance V of the estimate. For a
    Gaussian likelihood the bound's expectation therefore differs from the bound by

        - 1 / (2 sigma^2) sum_n tr(Kuu^-1 (m m^T + S - Kuu) Kuu^-1 V_n),

    which vanishes as ``num_samples`` approaches T, and at q(u) = p(u): there alone the bound stays
    unbiased. For other likelihoods the difference also depends on their curvature. Set
    ``num_samples`` to None to predict (functions that are compiled already keep the value they were
    compiled with).

    :param base_kernel: k_g, on the columns that this kernel sees.
    :param transforms: One of :mod:`interdomain.transforms`, or a list of those that commute.
    :param num_samples: How many elements to draw; None for whole orbits.
    :param active_dims: The columns of X that are transformed.
    :ivar num_samples: As given; can be set at any time.
    :raises ValueError: If the transformations do not commute, or ``num_samples`` is not between 2
        and T.
    """

    def __init__(
        self,
        base_kernel: Kernel,
        transforms: CyclicTransform | Sequence[CyclicTransform],
        *,
        num_samples: int | None = None,
        active_dims: Sequence[int] | slice | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        self.base_kernel = single_output("base_kernel", base_kernel)
        self.transform = Product(transforms)
        self.num_samples = num_samples

    @property
    def num_samples(self) -> int | None:
        """How many elements of the group are drawn; None for all."""
        return self._num_samples

    @num_samples.setter
    def num_samples(self, value: int | None) -> None:
        number = as_integer(value)
        if value is not None and (number is None or not 2 <= number <= self.transform.order):
            raise ValueError(
                "num_samples must be an integer between 2 and the number of elements, "
                f"{self.transform.order}, found {value!r}; pass None for whole orbits."
            )
        self._num_samples = number

    @property
    def point_kernel(self) -> Kernel:
        return self.base_kernel

    @property
    def point_dim(self) -> int | None:
        return self.transform.input_dim

    @property
    def point_weights(self) -> tf.Tensor:
        return mean_weights(self.transform.order)

    @property
    def input_dim(self) -> int | None:
        return self.transform.input_dim

    @inherit_check_shapes
    def points(self, X: tf.Tensor) -> tf.Tensor:
        orbits = tf.transpose(self.transform.orbit(X), [1, 0, 2])
        return tf.ensure_shape(orbits, [X.shape[0], self.transform.order, X.shape[-1]])

    def _cross(self, Z: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        if self.num_samples is None:
            return super()._cross(Z, X)
        weights = mean_weights(self.num_samples)
        return cross_sums(self.base_kernel, Z, self._sample(X, self.num_samples), weights)

    def _variances(self, X: tf.Tensor) -> tf.Tensor:
        if self.num_samples is None:
            return super()._variances(X)
        # Pairs of an element with itself are 1 / T of all, and S of the S^2 that are drawn.
        size, order = self.num_samples, self.transform.order
        points = self._sample(X, size)
        variances = tf.reduce_mean(self.base_kernel(points, full_cov=False), axis=-1)
        pairs = quadratic_sums(self.base_kernel, points, mean_weights(size))
        distinct = (size * pairs - variances) / (size - 1)
        return variances / order + (1 - 1 / order) * distinct

    def _sample(self, X: tf.Tensor, size: int) -> tf.Tensor:
        """Images of each input under elements drawn for it, ``[N, size, D]``."""
        order = self.transform.order
        _, elements = tf.math.top_k(tf.random.uniform([tf.shape(X)[0], order]), size)
        axes = self.transform.axes
        images = tf.tile(X[:, None, :], [1, size, 1])
        remaining = elements
        for axis in reversed(axes):  # the last varies fastest
            images = _powers(axis, images, remaining % axis.order)
            remaining //= axis.order
        return tf.ensure_shape(images, [X.shape[0], size, X.shape[-1]])


def take_whole_orbits(module: tf.Module) -> None:
    """Set ``num_samples`` of every :class:`Invariant` in a module, itself included, to None."""
    for part in (module, *module.submodules):
        if isinstance(part, Invariant):
            part.num_samples = None


def _powers(axis: CyclicTransform, X: tf.Tensor, exponents: tf.Tensor) -> tf.Tensor:
    """``G^exponent x`` for each x of X ``[..., D]`` and its exponent ``[...]``, digit by digit."""
    for digit in range(int(np.ceil(np.log2(axis.order)))):
        applied = (exponents // 2**digit) % 2 == 1
        X = tf.where(applied[..., None], axis.power(X, 2**digit), X)
    return X
