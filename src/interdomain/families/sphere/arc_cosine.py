"""Arc-cosine kernels, the limits of wide one-layer neural networks: Cho & Saul, *Kernel Methods for
Deep Learning*, 2009, eqs. 3-6. Here they are divided by the value at t = 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from ..._arguments import integer
from .kernel import ZonalKernel
from .mathematics.funk_hecke import power_coefficient


class ArcCosine(ZonalKernel):
    """The arc-cosine kernel (Cho & Saul 2009), whose eigenvalues are known in every dimension.

    It is the covariance of an infinitely wide network with the activation ``max(t, 0)^order``: a
    step (0), a ReLU (1) or its square (2). It is divided by its value for equal directions, so that
    ``K(x, x) = variance r^(2 order)``. (GPflow's ``ArcCosine`` has the same scale for orders 0 and
    1, and is three times as large for order 2.)

    :param order: The power of the activation: 0, 1 or 2.
    :param options: All arguments of :class:`ZonalKernel`.
    :raises ValueError: If ``order`` is not 0, 1 or 2; also as for :class:`ZonalKernel`.
    """

    def __init__(self, order: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.order = integer("order", order, at_least=0, at_most=2)
        self.radial_power = float(self.order)

    @inherit_check_shapes
    def shape_function(self, t: TensorType) -> tf.Tensor:
        return arc_cosine(tf.convert_to_tensor(t), self.order)

    @inherit_check_shapes
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        """The squared coefficients of ``max(t, 0)^order`` in closed form, scaled so that
        ``kappa(1) = 1``. They are exactly zero for l > order with l - order even."""
        d = dimension
        scale = (2.0, 2.0 * d, 2.0 * d * (d + 2) / 3)[self.order]  # 1 / E[max(t, 0)^(2 order)]
        values = [scale * power_coefficient(self.order, d, degree) ** 2 for degree in degrees]
        return tf.constant(values, self.variance.dtype)

    def has_degree(self, dimension: int, degree: int) -> bool:
        return degree <= self.order or (degree - self.order) % 2 == 1


@check_shapes("t: [any...]", "return: [any...]")
def arc_cosine(t: tf.Tensor, order: int) -> tf.Tensor:
    """The arc-cosine function kappa_n(t) of order n = 0, 1 or 2, with kappa_n(1) = 1.

    For orders 1 and 2, ``kappa_n' = n^2 / (2n - 1) kappa_{n-1}``, so gradients are values of a
    lower order, and finite at t = -1 and t = 1. The slope of order 0 diverges at both ends. Within
    a rounding error of the ends it is set to zero, because inputs that coincide do so for all
    hyperparameters.

    :param t: Inner products of unit vectors; rounding errors outside [-1, 1] are clipped.
    """

    @tf.custom_gradient
    def evaluate(t: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        clipped = tf.clip_by_value(t, -1, 1)
        theta = tf.acos(clipped)
        sine_squared = (1 - clipped) * (1 + clipped)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            if order > 0:
                return upstream * (order**2 / (2 * order - 1)) * arc_cosine(t, order - 1)
            inside = sine_squared > 4 * np.finfo(t.dtype.as_numpy_dtype).eps
            slope = 1 / (np.pi * tf.sqrt(tf.where(inside, sine_squared, tf.ones_like(t))))
            return upstream * tf.where(inside, slope, tf.zeros_like(t))

        if order == 0:
            return 1 - theta / np.pi, gradient
        sine = tf.sqrt(sine_squared)
        if order == 1:
            return (sine + (np.pi - theta) * clipped) / np.pi, gradient
        turned = (np.pi - theta) * (1 + 2 * tf.square(clipped))
        return (3 * sine * clipped + turned) / (3 * np.pi), gradient

    return evaluate(t)
