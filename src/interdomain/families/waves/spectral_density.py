"""Spectral densities of GPflow's Matern and squared exponential kernels.

The density S is defined by ``k(tau) = (2 pi)^-D int S(w) exp(i w^T tau) dw``, with the angular
frequency w in radians per unit of x."""

from __future__ import annotations

import math

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Matern12, Matern32, Matern52, SquaredExponential

from ..._arguments import Array, refusal
from ...linalg.periodic import matern_density

_ORDERS = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5, SquaredExponential: math.inf}


def spectral_density(kernel: Kernel, frequencies: TensorType) -> tf.Tensor:
    """The spectral density of a stationary kernel, with one lengthscale or one for each column.

    >>> import gpflow, numpy as np
    >>> from interdomain.families.waves.spectral_density import spectral_density
    >>> kernel = gpflow.kernels.Matern32(lengthscales=0.5)
    >>> w = np.linspace(-200, 200, 100_001)[:, None]
    >>> density = spectral_density(kernel, w)
    >>> print(f"{np.sum(density) * (w[1, 0] - w[0, 0]) / (2 * np.pi):.3f}")  # the variance
    1.000

    :param frequencies: Angular frequencies ``[J, D]`` in the kernel's columns.
    :return: The densities ``[J]``.
    :raises ValueError: If the kernel is not stationary, or its density is not known.
    """
    order = matern_order(kernel)
    w = tf.convert_to_tensor(frequencies, gpflow.default_float())
    dim = w.shape[-1]
    lengthscales = kernel.lengthscales * tf.ones(dim, w.dtype)
    # The density of a multivariate Student's t distribution, or of a Gaussian.
    density = matern_density(order, tf.reduce_sum(tf.square(w * lengthscales), axis=-1), dim)
    return kernel.variance * tf.reduce_prod(lengthscales) * density


def matern_order(kernel: Kernel) -> float:
    """The order nu of a Matern kernel; infinity for a squared exponential kernel.

    :raises ValueError: If the kernel is of another class.
    """
    orders = [nu for known, nu in _ORDERS.items() if isinstance(kernel, known)]
    if orders:
        return orders[0]
    raise ValueError(
        f"base_kernel must have a known spectral density, found {type(kernel).__name__}; pass "
        "Matern12, Matern32, Matern52 or SquaredExponential of gpflow.kernels, or add and multiply "
        "Periodized kernels of these."
    )


def column_lengthscales(kernel: Kernel, num_columns: int) -> Array:
    """The lengthscale of each column of a box, ``[D]``.

    :raises ValueError: If the kernel's density is not known, or its columns are not the box's.
    """
    matern_order(kernel)
    if not (isinstance(kernel.active_dims, slice) and kernel.active_dims == slice(None)):
        remedy = "leave them out there, and pass active_dims to Periodized"
        rule = f"see all {num_columns} columns of the box"
        raise refusal("base_kernel", rule, f"active_dims {kernel.active_dims}", remedy)
    lengthscales = np.asarray(kernel.lengthscales.numpy(), float)
    if lengthscales.shape not in ((), (num_columns,)):
        remedy = "pass lower and upper with one number for each column"
        rule = f"have one lengthscale, or one for each of the {num_columns} columns of the box"
        raise refusal("base_kernel", rule, f"shape {lengthscales.shape}", remedy)
    return np.broadcast_to(lengthscales, [num_columns])
