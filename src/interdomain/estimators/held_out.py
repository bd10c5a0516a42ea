"""The choice of rows for small versions of models: rows of a part of the levels; held-out rows."""

from __future__ import annotations

import bisect
from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from .._arguments import Array, IntArray
from .prepared import PreparedData

_MOST_NEW = 10_000
"""The largest number of new rows whose distances are computed."""

_SHARE = 1 / 3
"""The largest share of the rows that balls remove from the training rows."""


_MOST_LEVELS = 1_000
"""The largest number of levels of groups in small versions of models."""


def with_fewer_levels(data: PreparedData, seed: int) -> PreparedData:
    """The data with only the rows of 1,000 levels of the largest column of groups, drawn at random.
    Small versions of models then have as many rows for each level as models at full size."""
    X, num_levels = data.X, list(data.num_levels)
    largest = int(np.argmax([*num_levels, 0]))
    if not num_levels or num_levels[largest] <= _MOST_LEVELS:
        return data
    levels = np.random.default_rng(seed).permutation(num_levels[largest])[:_MOST_LEVELS]
    rows = np.flatnonzero(np.isin(X[:, data.num_numeric + largest], levels))
    X = X[rows]
    for k in range(len(num_levels)):
        present, X[:, data.num_numeric + k] = np.unique(
            X[:, data.num_numeric + k], return_inverse=True
        )
        num_levels[k] = max(len(present), 2)
    return replace(data, X=X, Y=data.Y[rows], num_levels=tuple(num_levels))


def held_out_rows(
    X: Array, number: int, seed: int, X_new: Array | None = None
) -> tuple[IntArray, IntArray]:
    """Draw the held-out rows and the training rows, in random order.

    With new rows, the distances from held-out rows to training rows are like the distances from new
    rows to X. Balls around random rows are removed from the training rows. The radius of a ball is
    the distance of a random new row to its nearest row in X. Among the rows in the balls, the rows
    whose distances match best are held out. There are ``number`` balls, or fewer if balls have
    removed a third of the rows.

    :param X: Rows ``[N, D]``, in coordinates with comparable distances.
    :param number: The largest number of held-out rows.
    :param X_new: Rows ``[n, D]`` at which a model is to predict; None to hold out rows at random.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    if X_new is None:
        return order[:number], order[number:]
    tree = cKDTree(X)
    distances, _ = tree.query(X_new[rng.permutation(len(X_new))[:_MOST_NEW]])
    apart, most = np.zeros(len(X), bool), int(_SHARE * len(X))
    for center, radius in zip(order[:number], rng.choice(distances, number), strict=True):
        within = tree.query_ball_point(X[center], np.nextafter(radius, 0))
        if len(within) > most:  # a ball has a third of the rows at most
            within = tree.query(X[center], most)[1]
        apart[within] = apart[center] = True
        if np.sum(apart) >= most:
            break
    others = np.flatnonzero(~apart)
    in_balls = np.flatnonzero(apart)
    depths, _ = cKDTree(X[others]).query(X[in_balls])
    places = np.argsort(depths)
    sorted_depths, sorted_rows = list(depths[places]), list(in_balls[places])
    held_out = []
    for distance in rng.choice(distances, min(number, len(in_balls))):
        place = bisect.bisect(sorted_depths, distance)
        if place == len(sorted_depths) or (
            place and distance - sorted_depths[place - 1] < sorted_depths[place] - distance
        ):
            place -= 1
        sorted_depths.pop(place)
        held_out.append(sorted_rows.pop(place))
    return np.array(held_out), rng.permutation(others)
