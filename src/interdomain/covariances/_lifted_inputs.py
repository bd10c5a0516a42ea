"""Inputs lifted to the sphere, and inverse eigenvalues: for all inducing variables there."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..inducing_variables import ActivationFeatures, SphericalHarmonics
from ..inducing_variables._harmonic_growth import least_eigenvalue
from ..kernels import ZonalKernel
from ..kernels._columns import num_columns, with_columns
from ..kernels.zonal.base import sphere_dimension
from .columns import num_input_columns
from .domains import Domain, domain


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
