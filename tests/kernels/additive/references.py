"""Zero-mean kernels of one column, by sums over images of textbook formulas."""

from __future__ import annotations

import numpy as np
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential

from tests.kernels.periodic.references import SHAPES

_INTEGRALS = {
    Matern12: 2.0,
    Matern32: 4 / np.sqrt(3),
    Matern52: 16 / (3 * np.sqrt(5)),
    SquaredExponential: np.sqrt(2 * np.pi),
}
"""Of each over all distances, in lengthscales."""


def periodic(kind: type, ratio: float, lags: np.ndarray) -> np.ndarray:
    """A kernel of variance one summed over its images, without its mean over a period of one."""
    formula, integral = SHAPES[kind.__name__], _INTEGRALS[kind]
    reach = int(np.ceil(40 * ratio)) + 2
    images = np.arange(-reach, reach + 1)
    total = np.sum(formula(np.abs(lags[..., None] + images) / ratio), axis=-1)
    return total - ratio * integral


def unit(kind: type, ratio: float, lags: np.ndarray) -> np.ndarray:
    """The same, of variance one."""
    return periodic(kind, ratio, lags) / periodic(kind, ratio, np.zeros(1))
