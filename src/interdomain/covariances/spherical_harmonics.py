"""Covariances of spherical harmonics: Dutordoir et al. 2020, section 3.3.

What whole levels explain of a zonal kernel needs no harmonic: by the addition theorem,
``sum_j Y_lj(x) Y_lj(x') = N(d, l) P_l(x^T x')``, those of a degree sum to a Gegenbauer polynomial.
"""

from __future__ import annotations

from functools import partial

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf

from ..inducing_variables import SphericalHarmonics
from ..kernels import ZonalKernel
from ..kernels._diagonals import DiagonalTerm
from ..kernels.finite_rank import explained_covariance, explained_terms
from ..kernels.zonal.base import cosines, products
from ..linalg import diagonal_operator
from ..sphere import zonal_series
from ._lifted_inputs import inverse_eigenvalues, radial_and_unit
from .dispatch import Kuf_shapes, Kuu_operator
from .finite_rank import explained_covariance_by_features


@Kuf.register(SphericalHarmonics, ZonalKernel, object)
@Kuf_shapes
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
    levels = inverse_eigenvalues(kernel, _eigenvalues(inducing_variable, kernel))
    # One node of the graph, where tf.repeat is fifty.
    return tf.gather(levels, inducing_variable.level_of_each)


@Kuu_operator.register(SphericalHarmonics, ZonalKernel)
def Kuu_operator_spherical_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, *, jitter: float = 0.0
) -> tf.linalg.LinearOperatorDiag:
    """The diagonal; ``jitter`` is not added, because a diagonal needs no factorisation."""
    return diagonal_operator(Kuu_diagonal(inducing_variable, kernel))


@explained_covariance.register(SphericalHarmonics, ZonalKernel, object, object)
@check_shapes(
    "X: [batch..., N, D]",
    "X2: [batch2..., N2, D]",
    "return: [batch..., N, batch2..., N2] if X2 is not None",
    "return: [batch..., N, N] if X2 is None",
)
def explained_covariance_harmonics(
    inducing_variable: SphericalHarmonics,
    kernel: ZonalKernel,
    X: TensorType,
    X2: TensorType | None,
) -> tf.Tensor:
    """``variance (r r')^p sum_l lambda_l N(d, l) P_l(cos of the angle)``, p being the kernel's
    radial power."""
    if not inducing_variable.has_whole_degrees:
        return explained_covariance_by_features(inducing_variable, kernel, X, X2)
    scale, unit = radial_and_unit(inducing_variable, kernel, X)
    if X2 is None:
        t = cosines(unit)
        scales = scale[..., :, None] * scale[..., None, :]
    else:
        scale2, unit2 = radial_and_unit(inducing_variable, kernel, X2)
        t = cosines(unit, unit2)
        scales = products(scale[..., None], scale2[..., None])
    shares = variance_shares(inducing_variable, kernel)
    degrees = inducing_variable.degrees
    weights = tf.scatter_nd([[degree] for degree in degrees], shares, [degrees[-1] + 1])
    return kernel.variance * scales * zonal_series(t, weights, inducing_variable.dimension)


@explained_terms.register(SphericalHarmonics, ZonalKernel)
def explained_terms_harmonics(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel
) -> list[DiagonalTerm] | None:
    """The squared radii, times the variance of all levels."""
    if not inducing_variable.has_whole_degrees:
        return None
    return [
        (
            partial(_squared_radii, inducing_variable, kernel),
            partial(_explained_variance, inducing_variable, kernel),
        )
    ]


def _squared_radii(
    inducing_variable: SphericalHarmonics, kernel: ZonalKernel, X: tf.Tensor
) -> tf.Tensor:
    return tf.square(radial_and_unit(inducing_variable, kernel, X)[0])


def _explained_variance(inducing_variable: SphericalHarmonics, kernel: ZonalKernel) -> tf.Tensor:
    return kernel.variance * tf.reduce_sum(variance_shares(inducing_variable, kernel))


@check_shapes(
    "return: [L]",
)
def variance_shares(inducing_variable: SphericalHarmonics, kernel: ZonalKernel) -> tf.Tensor:
    """``N(d, l) lambda_l``, what of ``kappa(1)`` each level of the harmonics explains."""
    eigenvalues = _eigenvalues(inducing_variable, kernel)
    return tf.constant(inducing_variable.multiplicities, eigenvalues.dtype) * eigenvalues


def _eigenvalues(inducing_variable: SphericalHarmonics, kernel: ZonalKernel) -> tf.Tensor:
    """The lambda_l of each level of the harmonics, all of them positive."""
    inducing_variable.validate_kernel(kernel)
    eigenvalues = kernel.eigenvalues(inducing_variable.dimension, inducing_variable.degrees)
    inducing_variable.validate_eigenvalues(eigenvalues)
    return eigenvalues
