"""Rows that are held out to compare models: at random, or as far from the others as new rows."""

from __future__ import annotations

import bisect

import numpy as np
from scipy.spatial import cKDTree

from .._arguments import Array, IntArray

_MOST_NEW = 10_000
"""New rows whose distances are looked at."""

_SHARE = 1 / 3
"""The largest share of rows that are taken away from training."""


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
