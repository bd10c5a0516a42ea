"""The targets of the recovery benchmark as cases of GPflow's contract for a kernel."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf

from benchmarks.kernel_recovery.recovery_targets import (
    GeneralizedSpectralMixture,
    TimeInvertedFractionalBrownianMotion,
)
from tests.kernels.cases import KernelCase, column_variances, double, double_roots, trained


class _Function(tf.Module):
    """Of two values for each input, with parameters of its own, named after it."""

    def __init__(self, num_columns: int, constants: list[float]) -> None:
        super().__init__()
        self._prefix = type(self).__name__.lower()
        slopes = np.stack([column_variances(num_columns)] * 2, axis=1) / 4
        setattr(self, f"{self._prefix}_slopes", gpflow.Parameter(slopes))
        setattr(self, f"{self._prefix}_constants", gpflow.Parameter(constants))

    @property
    def constants(self) -> gpflow.Parameter:
        return getattr(self, f"{self._prefix}_constants")

    def waves(self, X: tf.Tensor) -> tf.Tensor:
        slopes = tf.convert_to_tensor(getattr(self, f"{self._prefix}_slopes"))
        return tf.tanh(tf.tensordot(X, slopes, axes=[[-1], [0]]))


class Amplitude(_Function):
    def __init__(self, num_columns: int) -> None:
        super().__init__(num_columns, [1.1, 0.6])

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return self.constants * (1 + 0.3 * self.waves(X))


class Lengthscale(_Function):
    def __init__(self, num_columns: int) -> None:
        super().__init__(num_columns, [0.3, -0.2])

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.exp(self.constants + 0.5 * self.waves(X))


class Frequency(_Function):
    """``[..., 2, D]``, or ``[..., 2]`` for one column."""

    def __init__(self, num_columns: int) -> None:
        super().__init__(num_columns, [0.3, -0.1])
        self.num_columns = num_columns

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        values = self.constants + 0.2 * self.waves(X)
        if self.num_columns == 1:
            return values
        directions = tf.constant(column_variances(self.num_columns), values.dtype)
        return values[..., None] * directions


def _generalized(num_columns: int) -> GeneralizedSpectralMixture:
    return GeneralizedSpectralMixture(
        Amplitude(num_columns), Lengthscale(num_columns), Frequency(num_columns)
    )


def _brownian(num_columns: int) -> TimeInvertedFractionalBrownianMotion:
    assert num_columns == 1
    return trained(TimeInvertedFractionalBrownianMotion(0.7, variance=1.3))


@double.register(GeneralizedSpectralMixture)
def double_generalized(kernel: GeneralizedSpectralMixture) -> None:
    double_roots(kernel.amplitude.constants)


CASES = [
    KernelCase("GeneralizedSpectral", GeneralizedSpectralMixture, _generalized, accuracy=1e-12),
    KernelCase(
        "BrownianMotion",
        TimeInvertedFractionalBrownianMotion,
        _brownian,
        accuracy=1e-12,
        max_columns=1,
        valid=lambda X: np.abs(X) + 0.1,
    ),
]
