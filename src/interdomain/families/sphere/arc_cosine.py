"""Arc-cosine kernels, the limits of wide neural networks with one or more layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from ..._arguments import as_integer, integer, short
from .kernel import ZonalKernel
from .mathematics.arc_cosine import arc_cosine, arc_cosine_eigenvalues, arc_cosine_has_degree


class ArcCosine(ZonalKernel):
    """The arc-cosine kernel (Cho & Saul 2009), with a known spectrum in every dimension.

    The covariance of an infinitely wide network with the activation ``max(t, 0)^order``: a step
    (0), a ReLU (1) or its square (2). With ``depth`` above one, the network has as many hidden
    layers; only the first has the weight and bias variances, the others are bias-free.

    The kernel is divided by its value at coinciding directions, so that
    ``K(x, x) = variance r^(2 radial_power)`` with ``radial_power = order^depth``. (GPflow's
    ``ArcCosine`` has the same scale for orders 0 and 1, and is three times as large for order 2.)

    :param order: 0, 1 or 2.
    :param depth: Number of hidden layers, from 1 to 1,000.
    :param options: All arguments of :class:`ZonalKernel`.
    :raises ValueError: If ``order`` or ``depth`` is not one of these; and as :class:`ZonalKernel`.
    """

    def __init__(
        self,
        order: int = 1,
        depth: int = 1,
        **options: Any,
    ) -> None:
        if as_integer(order) not in (0, 1, 2):
            raise ValueError(f"order must be 0, 1 or 2, found {short(order)}; pass one of these.")
        remedy = "pass fewer: numbers grow like 2^depth with order 2, and time with any"
        depth = integer("depth", depth, at_least=1, at_most=1_000, remedy=remedy)
        super().__init__(**options)
        self.order = int(order)
        self.depth = depth
        self.radial_power = float(self.order**self.depth)

    @inherit_check_shapes
    def shape_function(self, t: TensorType) -> tf.Tensor:
        for _ in range(self.depth):
            t = arc_cosine(t, self.order)
        return t

    @inherit_check_shapes
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        values = arc_cosine_eigenvalues(self.order, self.depth, dimension, max(degrees))
        return tf.constant([values[degree] for degree in degrees], self.variance.dtype)

    def has_degree(self, dimension: int, degree: int) -> bool:
        return arc_cosine_has_degree(self.order, self.depth, degree)
