"""Kernels of functions that are invariant to a group of transformations, and inducing points for
these kernels: van der Wilk et al. 2017, Appendix D."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.kernels import Kernel

from ...core.parameters import single_output
from ...core.set_inducing_variables import SetInducingVariables
from ...core.set_kernel import SetKernel, mean_weights
from .transforms.base import CyclicTransform
from .transforms.product import Product


class Invariant(SetKernel):
    """The kernel of the mean of a function g over the orbit of its input under a group.

    ``f(x) = 1/T sum_s g(G^s x)``, ``g ~ GP(0, k_g)``, over the T elements of the group (van der
    Wilk et al., *Convolutional Gaussian Processes*, 2017, Appendix D, eqs. D.29 and D.30). The
    paper sums over the distinct points of the orbit, without 1/T. Every sample of f satisfies
    ``f(G x) = f(x)``, for any k_g. Inducing variables are values of g:
    :class:`interdomain.inducing_variables.OrbitInducingPoints`.

    If ``k_g(G x, G x') = k_g(x, x')``, this kernel is the first part of ``HarmonicKernel``. A
    variance of that part needs T evaluations of k_g; a variance of this kernel needs T^2.

    :param base_kernel: k_g, on the active columns of this kernel.
    :param transforms: One or several commuting transformations (:mod:`interdomain.transforms`).
    :param active_dims: The columns of X that are transformed.
    :raises ValueError: If the transformations do not commute.
    """

    def __init__(
        self,
        base_kernel: Kernel,
        transforms: CyclicTransform | Sequence[CyclicTransform],
        *,
        active_dims: Sequence[int] | slice | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        self.base_kernel = single_output("base_kernel", base_kernel)
        self.transform = Product(transforms)

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


class OrbitInducingPoints(SetInducingVariables):
    """Values ``u = g(z)`` of the base function of :class:`interdomain.kernels.Invariant`.

    ``cov(u, f(x)) = 1/T sum_s k_g(z, G^s x)`` and ``Kuu = k_g(z, z')`` (van der Wilk et al.,
    *Convolutional Gaussian Processes*, 2017, eqs. D.31 and D.32). An entry of Kuf needs T
    evaluations of k_g, compared with T^2 for inducing points of f. An entry of Kuu needs one.

    :param Z: ``[M, D]``, in the space of the data (of the kernel's ``active_dims``).
    :raises ValueError: If Z is not a matrix, or not finite.
    """
