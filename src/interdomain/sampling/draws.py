"""The random numbers that samples of a prior are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from ..sphere._typing import Array


@dataclass(frozen=True)
class Draws:
    """The random number generator for drawing functions, and how many are drawn.

    :ivar rng: The generator.
    :ivar num_samples: The number S of functions.
    :ivar num_features: The number F of random features that each function is a sum of. Every
        function has features of its own, so that the covariance of functions has no bias, however
        few features there are.
    :ivar num_columns: The number of columns of X; None if it is not known. Some kernels do not
        know it themselves.
    :ivar signs: Whether weights are random signs and not normal numbers. In a product, one factor
        has normal weights and the others have signs.
    """

    rng: np.random.Generator
    num_samples: int
    num_features: int
    num_columns: int | None = None
    signs: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """``(S, F)``."""
        return self.num_samples, self.num_features

    def weights(self, *shape: int) -> Array:
        """Independent numbers of mean zero and variance one."""
        if self.signs:
            return self.rng.integers(0, 2, size=shape) * 2.0 - 1.0
        return self.rng.standard_normal(shape)

    def on_columns(self, num_columns: int | None) -> Draws:
        """The draws for a kernel that is given this number of columns."""
        return replace(self, num_columns=num_columns)

    def of_factor(self, *, signs: bool) -> Draws:
        """The draws for a factor of a product: S F functions of one feature each."""
        return replace(
            self,
            num_samples=self.num_samples * self.num_features,
            num_features=1,
            signs=signs or self.signs,
        )

    def count_columns(self, kernel: Kernel) -> int:
        """The number of columns that a kernel sees.

        :raises ValueError: If it depends on a number of columns of X that is not known.
        """
        dims = kernel.active_dims
        if not isinstance(dims, slice):
            return len(dims)
        if self.num_columns is not None:
            return len(range(*dims.indices(self.num_columns)))
        lengthscales = getattr(kernel, "lengthscales", None)
        if lengthscales is not None and lengthscales.shape.rank:
            return int(lengthscales.shape[0])
        raise ValueError(
            f"input_dim must be given, as neither {type(kernel).__name__} nor its inducing "
            "variables say how many columns X has, found None; pass the number of columns."
        )


def constant(values: Array) -> tf.Tensor:
    """A tensor in ``gpflow.default_float()``."""
    return tf.constant(values, gpflow.default_float())


def as_array(value: TensorType) -> Array:
    """A parameter or a tensor as an array, in double precision."""
    return np.array(tf.convert_to_tensor(value), np.float64)


def as_float(value: TensorType) -> float:
    """As :func:`as_array`, for a scalar."""
    return float(as_array(value))
