"""Initial centres and inducing points: rows of the data, or the centres of its clusters."""

from __future__ import annotations

import warnings

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel
from scipy.cluster.vq import kmeans2

from .._arguments import Array, filled_matrix, integer
from .set_kernel import SetKernel

_MAX_ROWS = 10_000


def where_it_lives(kernel: Kernel, X: TensorType, seed: int) -> Array:
    """The inputs at which to place inducing points: X ``[N, D]``, or the points of a set kernel,
    such as patches. Random rows are used, just enough for 10,000 points or more."""
    values = filled_matrix("X", X, "[N, D]")
    seed = integer("seed", seed, at_least=0)
    if not isinstance(kernel, SetKernel) or kernel.point_dim is None:
        return values
    rows = np.random.default_rng(seed).permutation(len(values))
    columns = kernel.seen(tf.constant(values, gpflow.default_float()))
    number = kernel.points(columns[:1]).shape[1]
    points = kernel.points(tf.gather(columns, rows[: -(-_MAX_ROWS // number)]))
    return np.reshape(points, [-1, kernel.point_dim])


def k_means(X: TensorType, num_centres: int, *, seed: int = 0) -> Array:
    """The centres of clusters of the data, by k-means.

    :param X: Inputs ``[N, D]``. Of more than 10,000 rows, or ten for each centre, a sample is used.
    :param num_centres: The number of centres, at most N; ``num_inducing`` in messages.
    :param seed: The seed of the sample and of the initial centres, 0 or more.
    :return: The centres, ``[num_centres, D]``.
    :raises ValueError: If an argument is invalid, or X is not finite.
    """
    values, name = filled_matrix("X", X, "[N, D]"), "num_inducing"
    remedy = f"X has {len(values)} rows, and each centre needs one"
    num_centres = integer(name, num_centres, at_least=1, at_most=len(values), remedy=remedy)
    seed = integer("seed", seed, at_least=0)
    limit = max(_MAX_ROWS, 10 * num_centres)
    if len(values) > limit:
        values = values[np.random.default_rng(seed).choice(len(values), limit, replace=False)]
    rng = np.random.default_rng(seed)
    # Repeated rows can leave k-means with empty clusters. The centres of empty clusters stay at
    # rows of the data, where all centres start.
    start = values[rng.choice(len(values), num_centres, replace=False)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="One of the clusters is empty")
        centres, labels = kmeans2(values, start, iter=20, minit="matrix")
    empty = np.bincount(labels, minlength=num_centres) == 0
    centres[empty] = start[empty]
    return np.asarray(centres, gpflow.default_float())
