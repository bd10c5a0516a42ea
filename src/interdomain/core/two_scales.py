"""The stationary kernel ``TwoScales``, a sum of a short-range and a long-range kernel."""

from __future__ import annotations

from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import IsotropicStationary
from tensorflow_probability import bijectors

_MOST = 100.0


class TwoScales(IsotropicStationary):
    """The sum of two Matérn-3/2 kernels, whose lengthscales differ by a constant factor.

    ``k(r) = variance * (share * m(r) + (1 - share) * m(r / ratio))``. Here ``m(r) = (1 + sqrt(3)
    r) exp(-sqrt(3) r)``, and r is the distance in ``lengthscales``. Nearest neighbours are the same
    for both kernels of the sum. ``K`` expects the selected columns, like ``K`` of GPflow's
    stationary kernels.

    >>> import numpy as np, interdomain as idm
    >>> kernel = idm.kernels.TwoScales(lengthscales=[0.1, 0.2], ratio=10.0, share=0.25)
    >>> bool(abs(kernel(np.zeros([1, 2]), np.ones([1, 2]))[0, 0]) < 0.5)
    True

    :param variance: The variance of the sum.
    :param lengthscales: The shorter lengthscales: a number, or one for each column.
    :param ratio: The longer lengthscale divided by the shorter one, between 1 and 100.
    :param share: The short-scale kernel's share of the variance, between 0 and 1.
    :raises ValueError: If the ratio or the share is out of its range.
    """

    def __init__(
        self,
        variance: TensorType = 1.0,
        lengthscales: TensorType = 1.0,
        *,
        ratio: float = 10.0,
        share: float = 0.5,
        active_dims: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(variance, lengthscales, active_dims=active_dims, name=name)
        if not 1 < ratio < _MOST:
            raise ValueError(f"ratio must be between 1 and {_MOST:g}, found {ratio!r}; pass 10.")
        if not 0 < share < 1:
            raise ValueError(f"share must be between 0 and 1, found {share!r}; pass 0.5.")
        one = tf.ones([], gpflow.default_float())
        self.ratio = gpflow.Parameter(ratio, transform=bijectors.Sigmoid(one, _MOST * one))
        self.share = gpflow.Parameter(share, transform=bijectors.Sigmoid())

    @property
    def middle(self) -> float:
        """The geometric mean of the two lengthscales, divided by the shorter one."""
        return float(self.ratio.numpy() ** 0.5)

    def K_r(self, r: TensorType) -> tf.Tensor:
        """The kernel at distances r, measured in lengthscales."""
        short = self.share * _matern(r)
        return self.variance * (short + (1 - self.share) * _matern(r / self.ratio))


def _matern(r: TensorType) -> tf.Tensor:
    scaled = tf.cast(3.0, r.dtype) ** 0.5 * r
    return (1 + scaled) * tf.exp(-scaled)
