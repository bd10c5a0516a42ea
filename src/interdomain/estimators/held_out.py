"""Rows of small versions of models: those of a part of the levels, and those that are held out."""

from __future__ import annotations

import bisect
from dataclasses import replace

import numpy as np
from scipy.spatial import cKDTree

from .._arguments import Array, IntArray
from .prepared import PreparedData

_MOST_NEW = 10_000
"""New rows whose distances are looked at."""

_SHARE = 1 / 3
"""The largest share of rows that are taken away from training."""


_MOST_LEVELS = 1_000
"""The largest number of levels of groups in small versions of models."""


def with_fewer_levels(data: PreparedData, seed: int) -> PreparedData:
    """The rows of a part of the levels, drawn at random: small versions of models of groups have as
    many rows a level as those at full size."""
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
    """Draw rows to hold out, and the rows to train with, in random order.

    With new rows, the distances of held-out rows to the training rows are like the distances of new
    rows to X. Balls around random rows are taken away from the training rows: the radius of a ball
    is the distance of a random new row to the nearest row. Of the rows in the balls those are held
    out whose distances suit best. Fewer rows are held out where a third of the rows is in balls of
    few rows.

    :param X: ``[N, D]``, in coordinates in which distances compare.
    :param number: The number of held-out rows, at most.
    :param X_new: Rows ``[n, D]`` at which a model is to predict; None for held-out rows at random.
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
        if len(within) > most:  # new rows are farther away than a third of the rows allow
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
