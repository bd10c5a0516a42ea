"""Means of blocks of pixels of a mountain range, and the map at pixels."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from numpy.typing import NDArray

import interdomain as idm
from benchmarks._lib import race
from benchmarks._lib.data import Array
from benchmarks._lib.elevations import jacksboro
from benchmarks.functionals.rows import errors, fitted, numbered, predicted
from interdomain.functionals import Mean, Value


def places(shape: tuple[int, ...], side: int = 1) -> Array:
    """The centres of blocks of pixels, column and row in pixels, ``[H W, 2]``."""
    rows, columns = ((np.arange(size) + 0.5) * side for size in shape)
    return np.asarray(np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2))


def blocks(*, model: str, side: int, most_pixels: int, **_: Any) -> dict[str, Any]:
    """The elevation of pixels, in metres, from the means of square blocks.

    :param model: "repeat" for the mean of the block, "linear" for linear interpolation of centres;
        "means_AxB" has A x B splines, and "centres_AxB" the same with means as values at centres.
    :param most_pixels: the most rows and columns of the map that are used.
    """
    heights = jacksboro()[:most_pixels, :most_pixels]
    shape = tuple(size // side for size in heights.shape)
    heights = heights[: shape[0] * side, : shape[1] * side]
    means = heights.reshape(shape[0], side, shape[1], side).mean(axis=(1, 3))
    X, Y = places(shape, side), means.reshape(-1, 1)
    new, truth = places(heights.shape), heights.reshape(-1, 1)
    count = {"all_rows": len(Y)}
    if model == "repeat":
        return count | errors(truth, np.kron(means, np.ones((side, side))).reshape(-1, 1))
    if model == "linear":
        return count | errors(truth, race.linear(X, Y, new)[0][:, None])
    kind, size = model.split("_")
    level, scale = Y.mean(), Y.std()
    numbers = [int(number) for number in size.split("x")]
    first, second = (gpflow.kernels.Matern32(1.0, 20.0, active_dims=[k]) for k in range(2))
    gpflow.set_trainable(second.variance, False)
    ends: NDArray[Any] = np.array(heights.shape[::-1], float)
    splines = idm.inducing_variables.SplineFeatures(np.zeros(2), ends, numbers, 2)
    prior = idm.kernels.FiniteRank(first * second, splines)
    data = X, (Y - level) / scale
    functionals = [Value(), Mean([side, side])] if kind == "means" else []
    if functionals:
        data = numbered(X, 1), data[1]
    trained, found = fitted(data, prior, splines, functionals, noise_variance=0.01)
    mean, variance = predicted(trained, new, 0)
    return found | errors(truth, level + scale * mean, scale**2 * variance)
