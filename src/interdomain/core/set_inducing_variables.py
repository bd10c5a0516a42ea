"""Inducing variables of kernels on sets of points (patches, orbits): values of a base function."""

from __future__ import annotations

import abc

import gpflow
import tensorflow as tf
from gpflow.base import TensorType

from .._arguments import filled_matrix
from ..linalg import Full, StructuredOperator
from .columns import num_columns
from .covariances import Kvu, Kvu_shapes
from .family import InterDomainInducingVariables, with_jitter
from .set_kernel import SetKernel


class SetInducingVariables(InterDomainInducingVariables, abc.ABC):
    """Values ``u = g(z)`` of the base function g of a :class:`interdomain.kernels.SetKernel`.

    :param Z: Points ``[M, E]`` in the input space of g.
    :raises ValueError: If Z is not a matrix, or not finite.
    """

    kernels = (SetKernel,)
    fitting_kernels = "Convolutional, Invariant or another SetKernel"

    def __init__(self, Z: TensorType, *, name: str | None = None) -> None:
        super().__init__(name=name)
        if not isinstance(Z, gpflow.Parameter):
            Z = gpflow.Parameter(filled_matrix("Z", Z, "[M, E]").astype(gpflow.default_float()))
        self.Z = Z

    @property
    def num_inducing(self) -> tf.Tensor | int:
        return self.Z.shape[0] or tf.shape(self.Z)[0]

    def num_columns(self, kernel: SetKernel) -> int | None:
        """The kernel's number of columns of X; the columns of Z if points are in X's space."""
        dimension = self.Z.shape[-1] if kernel.point_dim is None else None
        return num_columns(kernel, kernel.input_dim or dimension)

    def Kuf(self, kernel: SetKernel, X: TensorType) -> tf.Tensor:
        """The covariances ``sum_p w_p k_g(z, x_p)``."""
        return kernel.point_covariance(self.points(kernel), X)

    def Kuu(self, kernel: SetKernel, *, jitter: float = 0.0) -> StructuredOperator:
        """The covariances ``k_g(z, z')``."""
        return Full(with_jitter(kernel.point_kernel(self.points(kernel)), jitter))

    def points(self, kernel: SetKernel) -> tf.Tensor:
        """The points z, ``[M, E]``; a ValueError if the kernel's points have another dimension."""
        return kernel.as_points(self.Z)


@Kvu.register(SetInducingVariables, SetInducingVariables, SetKernel)
@Kvu_shapes
def Kvu_set_kernel(
    iv_v: SetInducingVariables, iv_u: SetInducingVariables, kernel: SetKernel
) -> tf.Tensor:
    """The covariances ``k_g(w, z)``."""
    return kernel.point_kernel(iv_v.points(kernel), iv_u.points(kernel))
