"""The rows that train a :class:`interdomain.models.VecchiaSGPR`: checks, warnings and samples."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..._arguments import Array, warn
from ...training.scales import warn_of_data
from .model import VecchiaSGPR

_HEAVY = 16.0
"""The mean fourth power, in squares of the mean square (3 of a Gaussian), above which rare rows
hold much of the variation. A sample of 256 rows tells a mean square to a quarter at this value."""

_NEAREST = 5
"""Rows whose mean a row is compared with, to find rare rows."""

_FAR_OFF = 1e3
"""Deviations of Y between it and the mean function, beyond which training loses the deviations."""

_OWN = 1 / 3
"""The share of nearest rows at a row's own place, above which these leave too few others."""


def _residuals(model: VecchiaSGPR, explained: Callable[[Array], Any]) -> Array:
    """Y without what features and mean explain, ``[N, P]`` in float64."""
    X, Y = model.arrays
    return np.asarray(Y - np.asarray(explained(X)), np.float64)


def check_offset(model: VecchiaSGPR, explained: Callable[[Array], Any]) -> None:
    """:raises ValueError: If Y is so far from the mean function that its variation is lost beside
    this distance."""
    residuals, least_noise = _residuals(model, explained), model.likelihood.variance_lower_bound
    most = min(_FAR_OFF, 0.1 / np.sqrt(np.finfo(gpflow.default_float()).eps))
    distances = np.abs(residuals.mean(axis=0))
    deviations = np.maximum(residuals.std(axis=0), np.sqrt(least_noise))
    column = int(np.argmax(distances / deviations))
    if distances[column] > most * deviations[column]:
        raise ValueError(
            f"data: Y is {distances[column]:.3g} away from the mean function, more than {most:,.0f}"
            f" times its deviation {residuals.std(axis=0)[column]:.3g}; pass "
            "mean_function=gpflow.mean_functions.Constant(Y.mean(axis=0)), or "
            "(Y - Y.mean(axis=0)) / Y.std(axis=0)."
        )


def warn_of_rows(model: VecchiaSGPR) -> None:
    """Warn of columns and targets that are far from the scales of the prior, and of rows most of
    whose nearest rows are at the same place."""
    (X, Y), local = model.arrays, model.local
    local.warn(X)
    kernel = local.kernel
    if local.inputs == "degrees":  # whose columns have no lengthscales
        kernel = gpflow.kernels.Constant(kernel.variance.numpy())
    if model.all_parts != ("neighbours",):
        kernel = gpflow.kernels.Sum([kernel, model.kernel])
    parts = {"likelihood": model.likelihood, "mean_function": model.mean_function}
    warn_of_data(SimpleNamespace(kernel=kernel, **parts), X, Y)
    search = local.neighbours(X)
    if model.num_neighbours < len(X) and search.share_at_own_place(model.num_neighbours) > _OWN:
        places = len(np.unique(search.points, axis=0))
        warn(
            f"data: {len(X):,} rows are at {places:,} distinct places. Most of the "
            f"{model.num_neighbours} nearest rows of a row are at its own place, and say nothing "
            "of the function between places; pass the mean of Y at each place, or features (kernel "
            "and inducing_variable)."
        )


def chances_of_rows(model: VecchiaSGPR, explained: Callable[[Array], Any]) -> Array | None:
    """The chance of each row to be drawn into a sample, ``[N]``; None for the same chance.

    Where rare rows hold much of the variation, a uniform sample may have none of these. Half of a
    sample is then uniform, and the other half proportional to the squares of the residuals and of
    their differences from the mean of the nearest rows, so far as these squares are concentrated.

    :param explained: What features and mean explain of rows X.
    """
    X, residuals = model.arrays[0], _residuals(model, explained)
    search = model.local.neighbours(X)
    near = search.nearest(search.points * search.lengthscales, _NEAREST)
    concentrated = []
    for differences in (residuals - residuals.mean(axis=0), residuals - residuals[near].mean(1)):
        squares = np.sum(np.square(differences), axis=1)
        if len(X) * np.sum(np.square(squares)) > _HEAVY * np.sum(squares) ** 2:
            concentrated.append(squares / np.sum(squares))
    if not concentrated:
        return None
    chances: Array = (1 / len(X) + np.mean(concentrated, axis=0)) / 2
    return chances


def sample_of(
    model: VecchiaSGPR, number: int, seed: int, chances: Array | None = None
) -> tuple[Any, ...]:
    """Random rows with their neighbours: X and Y, the places of the neighbours and, last, of the
    row, ``[B, m + 1]``; coordinates ``[B, m + 1, d]``, which neighbours there are ``[B, m + 1]``,
    and the weights of rows ``[B]``."""
    X, Y, places, weights = model.sample(number, seed, chances)
    known, places = places >= 0, np.maximum(places, 0)
    points = model.local.coordinates(tf.convert_to_tensor(X)).numpy()
    return X, Y, places, points[places], known, weights


def mean_square(batch: tuple[tf.Tensor, ...]) -> float:
    """The mean square of the residuals of all rows, from a sample."""
    _, _, weights, residuals = batch
    squares = tf.reduce_mean(tf.square(residuals[:, -1]), axis=1)
    return float(tf.reduce_sum(weights * squares))
