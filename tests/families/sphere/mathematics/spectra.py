"""Stationary kernels of one lengthscale, as functions of what they are compared at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from interdomain.families.sphere.mathematics.laplace_beltrami import (
    stationary_eigenvalues,
    stationary_kernel,
)


@dataclass(frozen=True)
class Stationary:
    dimension: int
    lengthscale: tf.Tensor
    nu: float = np.inf

    def at_haversines(self, haversines: tf.Tensor) -> tf.Tensor:
        return stationary_kernel(haversines, self.dimension, self.lengthscale, self.nu)

    def shape_function(self, t: tf.Tensor) -> tf.Tensor:
        return self.at_haversines((1 - t) / 2)

    def eigenvalues(self, degrees: Sequence[int]) -> tf.Tensor:
        return stationary_eigenvalues(degrees, self.dimension, self.lengthscale, self.nu)
