"""The standard normal numbers that predictions through hidden layers are made of."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from .._arguments import Array

_MOST_SOBOL = 21_201
"""Dimensions of the Sobol sequence that SciPy has."""


def spread_draws(widths: Sequence[int], num_samples: int, seed: int) -> list[Array]:
    """Draws for predictions, ``[S, 1, P]`` for each hidden layer of P outputs.

    They are spread evenly (a scrambled Sobol sequence of all hidden outputs together), so that a
    few samples are enough. They are the same for every row, so that a prediction does not depend on
    the other rows, and is a smooth function of the inputs.
    """
    if not widths:
        return []
    total = sum(widths)
    if total <= _MOST_SOBOL:
        size = 2 ** int(np.ceil(np.log2(max(num_samples, 1))))
        uniform = qmc.Sobol(total, scramble=True, seed=seed).random(size)[:num_samples]
        values = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    else:
        values = np.random.default_rng(seed).standard_normal([num_samples, total])
    ends = np.cumsum(widths)[:-1]
    parts = np.split(values.astype(gpflow.default_float()), ends, axis=1)
    return [part[:, None] for part in parts]
