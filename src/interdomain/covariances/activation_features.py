"""Covariances of activation features: Tiao et al. 2023, eqs. 6 and 7, truncated alike."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables import ActivationFeatures
from ..kernels import ZonalKernel
from ..sphere import num_harmonics, zonal_series
from ._lifted_inputs import inverse_eigenvalues, radial_and_unit
from .dispatch import Kuf_shapes, Kuu_shapes


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
