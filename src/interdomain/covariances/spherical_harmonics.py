"""Covariances of spherical harmonics: Dutordoir et al. 2020, section 3.3."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables import SphericalHarmonics
from ..kernels import ZonalKernel
from ._lifted_inputs import inverse_eigenvalues, radial_and_unit
from .dispatch import Kuu_operator


@Kuf.register(SphericalHarmonics, ZonalKernel, object)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "Xnew: [batch..., N, E]",
    "return: [M, batch..., N]",
)
def Kuf_spherical_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, Xnew: TensorType
) -> tf.Tensor:
    """``radius^p Y_m(x / radius)``, p being the kernel's radial power."""
    scale, unit = radial_and_unit(inducing_variable, kernel, Xnew)
    inducing_variable.validate_kernel(kernel)
    return inducing_variable.at(unit, scale=scale)


@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M]",
)
def Kuu_diagonal(inducing_variable: SphericalHarmonics, kernel: ZonalKernel) -> tf.Tensor:
    """``1 / (variance lambda_l)``, l being the degree of each harmonic."""
    inducing_variable.validate_kernel(kernel)
    eigenvalues = kernel.eigenvalues(inducing_variable.dimension, inducing_variable.degrees)
    inducing_variable.validate_eigenvalues(eigenvalues)
    levels = inverse_eigenvalues(kernel, eigenvalues)
    # One node of the graph, where tf.repeat is fifty.
    return tf.gather(levels, inducing_variable.level_of_each)


@Kuu.register(SphericalHarmonics, ZonalKernel)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M, M]",
)
def Kuu_spherical_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, *, jitter: float = 0.0
) -> tf.Tensor:
    """The dense matrix, for consumers that need one; ``jitter`` is added as GPflow asks."""
    return tf.linalg.diag(Kuu_diagonal(inducing_variable, kernel) + jitter)


@Kuu_operator.register(SphericalHarmonics, ZonalKernel)
def Kuu_operator_spherical_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, *, jitter: float = 0.0
) -> tf.linalg.LinearOperatorDiag:
    """The diagonal; ``jitter`` is not added, because a diagonal needs no factorisation."""
    return tf.linalg.LinearOperatorDiag(
        Kuu_diagonal(inducing_variable, kernel), is_self_adjoint=True, is_positive_definite=True
    )
