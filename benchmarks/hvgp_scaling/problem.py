"""The data set and the parameters that all sides of `hvgp_scaling` share."""

from __future__ import annotations

import numpy as np

from benchmarks._lib.data import Array

INPUT_DIM = 8
NUM_DATA = 1_000_000  # the data set of which the rows are a minibatch
LENGTHSCALE = 2.0
NOISE_VARIANCE = 0.1


def random_data(rows: int, seed: int) -> tuple[Array, Array]:
    """Inputs and outputs without structure: the time of a step does not depend on them."""
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, INPUT_DIM)), generator.normal(size=(rows, 1))


def random_points(count: int, seed: int) -> Array:
    """Inducing points, [count, 8]."""
    return np.random.default_rng(seed + 1).normal(size=(count, INPUT_DIM))
