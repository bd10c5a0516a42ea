"""Covariances of spherical harmonics: Dutordoir et al. 2020, section 3.3."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables import SphericalHarmonics
from ..kernels import ZonalKernel
from ..sphere import spherical_harmonics
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
    X, _ = kernel.slice(tf.convert_to_tensor(Xnew), None)
    radius, unit = kernel.to_sphere(X)
    if unit.shape[-1] != inducing_variable.dimension:
        raise ValueError(
            f"the kernel sees {unit.shape[-1] - 1} columns of Xnew, but the inducing variable has "
            f"dimension {inducing_variable.dimension}; dimension must be the number of columns "
            f"plus one, {unit.shape[-1]} here."
        )
    inducing_variable.validate_kernel(kernel)
    scale = kernel.radial_factor(radius[..., 0], kernel.radial_power)
    return spherical_harmonics(unit, inducing_variable.degrees, scale=scale)


@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M]",
)
def Kuu_diagonal(inducing_variable: SphericalHarmonics, kernel: ZonalKernel) -> tf.Tensor:
    """``1 / (variance lambda_l)``, repeated for the harmonics of each degree."""
    inducing_variable.validate_kernel(kernel)
    eigenvalues = kernel.eigenvalues(inducing_variable.dimension, inducing_variable.degrees)
    inducing_variable.validate_eigenvalues(eigenvalues)
    # An eigenvalue that underflows in the course of training leaves features of no effect, not NaN:
    # its square, which the gradient takes, has to be a number as well.
    least = 1e4 * np.sqrt(np.finfo(eigenvalues.dtype.as_numpy_dtype).tiny)
    levels = 1 / (kernel.variance * tf.maximum(eigenvalues, least))
    diagonal = tf.repeat(levels, inducing_variable.multiplicities)
    return tf.ensure_shape(diagonal, [inducing_variable.num_inducing])


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
    """The diagonal; ``jitter`` is not added, because nothing has to be factorised."""
    return tf.linalg.LinearOperatorDiag(
        Kuu_diagonal(inducing_variable, kernel), is_self_adjoint=True, is_positive_definite=True
    )
