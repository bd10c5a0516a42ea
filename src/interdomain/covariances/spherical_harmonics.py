"""Covariances of features on the sphere: harmonics (Dutordoir et al. 2020, section 3.3) and units
with an activation (Tiao et al. 2023, eqs. 6 and 7, truncated alike).

What whole levels explain of a zonal kernel needs no harmonic: by the addition theorem,
``sum_j Y_lj(x) Y_lj(x') = N(d, l) P_l(x^T x')``, those of a degree sum to a Gegenbauer polynomial.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables import ActivationFeatures, SphericalHarmonics
from ..inducing_variables._harmonic_growth import least_eigenvalue
from ..kernels import ZonalKernel
from ..kernels._columns import num_columns, with_columns
from ..kernels._diagonals import DiagonalTerm
from ..kernels.finite_rank import explained_covariance, explained_terms
from ..kernels.zonal.base import cosines, products, sphere_dimension
from ..linalg import diagonal_operator
from ..sphere import num_harmonics, zonal_series
from .columns import num_input_columns
from .dispatch import Kuf_shapes, Kuu_operator, Kuu_shapes
from .domains import Domain, domain
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


# Inputs lifted to the sphere, and inverse eigenvalues: for all inducing variables there.


@num_input_columns.register((SphericalHarmonics, ActivationFeatures), ZonalKernel)
def num_input_columns_lifted(
    inducing_variable: SphericalHarmonics | ActivationFeatures, kernel: ZonalKernel
) -> int | None:
    """One fewer than the sphere's space has dimensions, if the inputs are lifted to it."""
    return num_columns(kernel, kernel.lift.num_columns(inducing_variable.dimension))


@domain.register((SphericalHarmonics, ActivationFeatures), ZonalKernel)
def domain_lifted(
    inducing_variable: SphericalHarmonics | ActivationFeatures, kernel: ZonalKernel
) -> Domain | None:
    """Latitudes end at the poles."""
    ends = kernel.lift.domain()
    return None if ends is None else Domain(*ends)


def radial_and_unit(
    inducing_variable: SphericalHarmonics | ActivationFeatures,
    kernel: ZonalKernel,
    Xnew: TensorType,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The kernel's radial factors ``[batch..., N]`` and the unit vectors ``[batch..., N, d]``.

    :raises ValueError: If the number of columns does not fit the inducing variable's dimension, or
        not even the rank of Xnew is known; or for NumPy arrays that are not on the kernel's sphere.
    """
    X, _ = kernel.slice(tf.convert_to_tensor(Xnew), None)
    if isinstance(Xnew, np.ndarray) and tf.executing_eagerly():
        kernel.lift.validate("Xnew", X.numpy())
    X = with_columns(X, kernel.lift.num_columns(inducing_variable.dimension))
    radius, unit = kernel.to_sphere(X)
    if sphere_dimension(unit) != inducing_variable.dimension:
        raise ValueError(
            f"the kernel sees {X.shape[-1]} columns of Xnew, but the inducing variable has "
            f"dimension {inducing_variable.dimension}; dimension must be {kernel.lift.rule}, "
            f"{unit.shape[-1]} here."
        )
    return kernel.radial_factor(radius[..., 0], kernel.radial_power), unit


def inverse_eigenvalues(
    kernel: ZonalKernel, eigenvalues: tf.Tensor, *, squared: bool = True
) -> tf.Tensor:
    """``1 / (variance lambda_l)``, for the eigenvalues lambda_l of some degrees.

    An eigenvalue that underflows leaves features of no effect, not NaN. One whose square does, of
    which the gradient to it is made, has no gradient.

    :param squared: Whether the squares of the result have to be numbers, too: it is then bounded.
    """
    bounded = tf.maximum(eigenvalues, least_eigenvalue(eigenvalues.dtype))
    inverse = 1 / (kernel.variance * bounded)
    if squared:
        return inverse
    tiny = float(np.finfo(eigenvalues.dtype.as_numpy_dtype).tiny)
    return inverse * tf.stop_gradient(bounded / tf.maximum(eigenvalues, tiny**0.8))


# Covariances of activation features: Tiao et al. 2023, eqs. 6 and 7, truncated alike.


@Kuf.register(ActivationFeatures, ZonalKernel, object)
@Kuf_shapes
def Kuf_activation_features(
    inducing_variable: ActivationFeatures, kernel: ZonalKernel, Xnew: TensorType
) -> tf.Tensor:
    """``r^p sum_l a_l N(d, l) P_l(z^T x / r)``, p being the kernel's radial power."""
    scale, unit = radial_and_unit(inducing_variable, kernel, Xnew)
    t = tf.tensordot(inducing_variable.directions, unit, [[-1], [-1]])
    return truncated_activation(inducing_variable, kernel, t) * scale


def truncated_activation(
    inducing_variable: ActivationFeatures, kernel: ZonalKernel, t: tf.Tensor
) -> tf.Tensor:
    """``sum_l a_l N(d, l) P_l(t)``: the activation of units as Kuf has it, of cosines t."""
    dimension, degrees = inducing_variable.dimension, inducing_variable.degrees(kernel)
    coefficients = inducing_variable.activation.coefficients(dimension, degrees)
    counts = [num_harmonics(dimension, degree) for degree in degrees]
    weights = np.zeros(degrees[-1] + 1)
    weights[list(degrees)] = coefficients * counts
    return zonal_series(t, tf.constant(weights, t.dtype), dimension)


@check_shapes(
    "first: [K, D, 1]",
    "second: [M, D, 1]",
    "return: [K, M]",
)
def inner_products(
    first: ActivationFeatures, second: ActivationFeatures, kernel: ZonalKernel
) -> tf.Tensor:
    """``<psi_k, phi_m>`` in the RKHS, over the degrees that both have.

    ``sum_l a_l b_l / lambda_l N(d, l) P_l(w_k^T z_m) / variance``, with the coefficients a_l and
    b_l of their activations.
    """
    dimension = first.dimension
    if first is second:
        degrees = first.degrees(kernel)
        t = tf.matmul(first.directions, first.directions, transpose_b=True)
    else:
        common = set(second.degrees(kernel))
        degrees = tuple(degree for degree in first.degrees(kernel) if degree in common)
        t = tf.matmul(first.directions, second.directions, transpose_b=True)
        if not degrees:
            return tf.zeros_like(t)
    products = first.activation.coefficients(dimension, degrees)
    products = products * second.activation.coefficients(dimension, degrees)
    products *= [num_harmonics(dimension, degree) for degree in degrees]
    inverse = inverse_eigenvalues(kernel, kernel.eigenvalues(dimension, degrees), squared=False)
    weights = tf.scatter_nd(
        [[degree] for degree in degrees],
        tf.constant(products, inverse.dtype) * inverse,
        [degrees[-1] + 1],
    )
    return zonal_series(t, weights, dimension)


@Kuu.register(ActivationFeatures, ZonalKernel)
@Kuu_shapes
def Kuu_activation_features(
    inducing_variable: ActivationFeatures, kernel: ZonalKernel, *, jitter: float = 0.0
) -> tf.Tensor:
    """``sum_l a_l^2 / lambda_l N(d, l) P_l(z^T z') / variance``, over the degrees of Kuf.

    ``jitter`` is relative to the diagonal: its scale is that of the activation in the RKHS, from
    less than one to more than 1e12, where that of a kernel matrix is the kernel's variance.
    """
    kuu = inner_products(inducing_variable, inducing_variable, kernel)
    return tf.linalg.set_diag(kuu, (1 + jitter) * tf.linalg.diag_part(kuu))
