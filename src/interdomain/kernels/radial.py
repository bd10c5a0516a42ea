"""Isotropic stationary kernels as functions of the squared distance, with their derivatives.

TensorFlow's gradient of a kernel matrix keeps and passes over every intermediate matrix. The
derivative with respect to the squared distance is known in closed form and, but for a factor, is
part of the value: with it the gradient costs one more pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel

ValueAndSlope = Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


@dataclass(frozen=True)
class RadialProfile:
    """``k = variance * rho(squared_scale * r2)``, r2 being the squared scaled distance.

    :param squared_scale: What r2 is multiplied by, to be folded into the inputs.
    :param value_and_slope: rho and its derivative, at a tensor of any shape.
    """

    squared_scale: float
    value_and_slope: ValueAndSlope


def _root(r2: tf.Tensor) -> tf.Tensor:
    """The distance; rounding may leave the square of a zero distance slightly negative."""
    return tf.sqrt(tf.maximum(r2, 1e-36))


def _squared_exponential(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    value = tf.exp(-r2)
    return value, -value


def _matern12(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    distance = _root(r2)
    value = tf.exp(-distance)
    # As in GPflow, a distance of zero passes no gradient on: there the kernel has a kink.
    return value, tf.where(r2 > 1e-36, -0.5 * value / distance, 0)


def _matern32(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    distance = _root(r2)
    decay = tf.exp(-distance)
    return (1 + distance) * decay, -0.5 * decay


def _matern52(r2: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    distance = _root(r2)
    decay = tf.exp(-distance)
    linear = (1 + distance) * decay
    return linear + r2 / 3 * decay, -linear / 6


# By exact type: a subclass may compute something else.
_PROFILES: dict[type[Kernel], RadialProfile] = {
    gpflow.kernels.SquaredExponential: RadialProfile(0.5, _squared_exponential),
    gpflow.kernels.Matern12: RadialProfile(1.0, _matern12),
    gpflow.kernels.Matern32: RadialProfile(3.0, _matern32),
    gpflow.kernels.Matern52: RadialProfile(5.0, _matern52),
}


def radial_profile(kernel: Kernel) -> RadialProfile | None:
    """The closed form of a kernel; None if it has none here."""
    return _PROFILES.get(type(kernel))
