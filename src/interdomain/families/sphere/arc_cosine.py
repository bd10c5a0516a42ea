"""Arc-cosine kernels, the limits of wide neural networks with one layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from ..._arguments import integer
from .kernel import ZonalKernel
from .mathematics.arc_cosine import arc_cosine, arc_cosine_eigenvalue


class ArcCosine(ZonalKernel):
    """The arc-cosine kernel (Cho & Saul 2009), with a known spectrum in every dimension.

    The covariance of an infinitely wide network with the activation ``max(t, 0)^order``: a step
    (0), a ReLU (1) or its square (2). It is divided by its value at coinciding directions, so that
    ``K(x, x) = variance r^(2 order)``. (GPflow's ``ArcCosine`` has the same scale for orders 0 and
    1, and is three times as large for order 2.)

    :param order: 0, 1 or 2.
    :param options: All arguments of :class:`ZonalKernel`.
    :raises ValueError: If ``order`` is not one of these; and as :class:`ZonalKernel`.
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
        values = [arc_cosine_eigenvalue(self.order, dimension, degree) for degree in degrees]
        return tf.constant(values, self.variance.dtype)

    def has_degree(self, dimension: int, degree: int) -> bool:
        return degree <= self.order or (degree - self.order) % 2 == 1
