"""The kernels to recover, the places where they are compared, and the paper's errors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._lib.data import Array


@dataclass(frozen=True)
class Target:
    """A kernel to recover: its domain, and the paper's mean squared error."""

    low: float
    high: float
    paper: float
    hurst: float | None = None  # of fractional Brownian motion, whose domain is open below

    def grid(self, count: int) -> Array:
        """Equally spaced points of the domain, [count, 1]."""
        if self.hurst is None:
            return np.linspace(self.low, self.high, count)[:, None]
        return np.linspace(self.low, self.high, count + 1)[1:, None]


TARGETS = {
    "gsm": Target(-1.0, 1.0, 0.0033),
    "ifbm_0.5": Target(0.1, 1.1, 0.0008, hurst=0.5),
    "ifbm_0.75": Target(0.1, 1.1, 0.0008, hurst=0.75),
}
FITTED_GRID, TESTED_GRID = 81, 100


def target_kernel(name: str) -> Any:
    """The kernel to recover."""
    from benchmarks.kernel_recovery.recovery_targets import (
        GeneralizedSpectralMixture,
        TimeInvertedFractionalBrownianMotion,
    )

    hurst = TARGETS[name].hurst
    if hurst is None:
        return GeneralizedSpectralMixture(gsm_amplitude, gsm_lengthscale, gsm_frequency)
    return TimeInvertedFractionalBrownianMotion(hurst)


def gsm_amplitude(x: Any) -> Any:
    """The amplitude w(x) of the target "gsm"."""
    import tensorflow as tf

    return 1.0 + 0.3 * tf.sin(math.pi * x)


def gsm_lengthscale(x: Any) -> Any:
    """The lengthscale l(x) of the target "gsm"."""
    import tensorflow as tf

    return 0.4 + 0.1 * tf.cos(math.pi * x)


def gsm_frequency(x: Any) -> Any:
    """The frequency mu(x) of the target "gsm"."""
    return 2.0 + x


def gsm_slope(x: Any) -> Any:
    """The derivative of mu(x) x, the local frequency at x."""
    return 2.0 + 2.0 * x
