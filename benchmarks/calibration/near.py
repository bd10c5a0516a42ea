"""Models of neighbours: alone, with features, merged rows, weights, groups and Student-t noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gpflow
import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array
from benchmarks.calibration.truths import NOISE, PLACES, ROWS, box_waves, exact, matern, square


def neighbours(rng: np.random.Generator, functions: int, *, both: bool = False) -> Array:
    X, new, local, parts = square(rng, ROWS), square(rng, PLACES), matern(0.3), []
    kernel = local
    if both:
        box, waves = box_waves()
        parts = [idm.kernels.FiniteRank(box, waves), waves]
        kernel = local + parts[0]
    how = {"local_kernel": local, "num_neighbours": 10, "noise_variance": NOISE}
    model = partial(idm.models.VecchiaSGPR, **how)
    return exact(rng, functions, kernel, X, new, lambda data: model(data, *parts))


def nearest_rows(**how: Any) -> Callable[[Any], Any]:
    """VecchiaSGPR without features, of the ten nearest rows."""
    return partial(idm.models.VecchiaSGPR, local_kernel=matern(0.3), num_neighbours=10, **how)


def merged(rng: np.random.Generator, functions: int) -> Array:
    X, new = np.repeat(square(rng, ROWS // 4), 4, axis=0), square(rng, PLACES)
    model = nearest_rows(noise_variance=NOISE, merge="exact")
    return exact(rng, functions, matern(0.3), X, new, model)


def weights(rng: np.random.Generator, functions: int) -> Array:
    """Noise variances from a third of the usual one to three times as much."""
    X, new, row_weights = square(rng, ROWS), square(rng, PLACES), np.geomspace(1 / 3, 3, ROWS)
    model = nearest_rows(noise_variance=NOISE, noise_weights=row_weights)

    def observe(rng: np.random.Generator, f: Array) -> Array:
        return f + np.sqrt(NOISE / row_weights)[:, None] * rng.normal(size=f.shape)

    return exact(rng, functions, matern(0.3), X, new, model, observe=observe)


def groups(rng: np.random.Generator, functions: int) -> Array:
    X = np.c_[square(rng, ROWS), np.arange(ROWS) % 4]
    new = np.c_[square(rng, PLACES), np.minimum(np.arange(PLACES), 4)]
    local = gpflow.kernels.Matern32(lengthscales=0.3, active_dims=[0, 1])
    intercepts = idm.tables.GroupIntercepts(np.arange(4), variance=0.5, active_dims=[2])
    features = idm.tables.GroupFeatures(intercepts)
    parts = idm.kernels.FiniteRank(intercepts, features), features
    how = {"local_kernel": local, "num_neighbours": 10, "noise_variance": NOISE}
    model = partial(idm.models.VecchiaSGPR, **how)
    return exact(rng, functions, local + intercepts, X, new, lambda data: model(data, *parts))


def student_t(rng: np.random.Generator, functions: int) -> Array:
    """Of four degrees of freedom, at the parameters that rows were drawn with."""
    X, new, degrees = square(rng, ROWS), square(rng, PLACES), 4.0

    def condition(data: Any) -> Any:
        noise = gpflow.likelihoods.StudentT(NOISE**0.5, degrees)
        model = nearest_rows(likelihood=noise, progress=False)(data)
        model.reweight()
        return model

    def observe(rng: np.random.Generator, f: Array) -> Array:
        return f + NOISE**0.5 * rng.standard_t(degrees, size=f.shape)

    return exact(rng, functions, matern(0.3), X, new, condition, observe=observe)
