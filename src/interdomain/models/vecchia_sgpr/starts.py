"""First values of a local kernel, from the data: the units of X and Y do not matter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from gpflow.kernels import Kernel, Matern32
from gpflow.kernels.base import ActiveDims

from ..._arguments import Array
from .conditionals import Conditionals
from .local_kernel import LocalKernel
from .search import Neighbours

_NOISE_SHARES = (0.02, 0.3, 0.9)
"""The shares of noise in the variance that the features leave, at the starts."""

_LENGTHSCALES = (1.0, 0.3)
"""The lengthscales of the starts, in distances of random rows."""

_OF_NEAREST, _FEWER = 2.0, 0.1
"""Times the distance of the nearest rows, and below which share of the distance of random rows this
is a start of its own."""

_ROWS_LOOKED_AT = 500


def first_kernel(X: Array, Y: Array, inputs: str, columns: ActiveDims | None) -> Kernel:
    """A Matérn-3/2 kernel whose lengthscales are shares of the deviations of the columns.

    :param columns: The columns of X that it sees; None for all.
    """
    scales = deviations(LocalKernel(Matern32(active_dims=columns), inputs).points(X))
    lengthscales = _LENGTHSCALES[1] * len(scales) ** 0.5 * scales
    if inputs == "degrees":
        lengthscales = np.sqrt(np.mean(lengthscales**2))
    variance = float(np.mean(np.var(np.asarray(Y, np.float64), axis=0)))
    return Matern32(variance if variance > 0 else 1.0, lengthscales, active_dims=columns)


def deviations(points: Array) -> Array:
    """The standard deviations of coordinates ``[N, d]``, ``[d]``; of a constant one it is 1."""
    coordinates = np.asarray(points, np.float64)
    values = np.std(coordinates, axis=0)
    constant = values <= 1e-12 * np.max(np.abs(coordinates), axis=0)
    return np.where(constant, 1.0, values)


def is_default(kernel: Kernel) -> bool:
    """Whether all lengthscales are one, GPflow's default, which says nothing of the data."""
    return bool(np.all(kernel.lengthscales.numpy() == 1.0))


def starts(points: Array, number: int) -> Iterator[tuple[float, Array]]:
    """Shares of noise, and lengthscales ``[d]``, from the rows.

    :param points: Coordinates of rows ``[N, d]``.
    :param number: The number of neighbours, whose distances are looked at.
    """
    scales, size = deviations(points), len(points)
    search = Neighbours(points, scales)
    some = points[:: -(-size // _ROWS_LOOKED_AT)]
    farthest = search.nearest(some, min(number + 1, size))[:, -1]
    distance = np.median(np.linalg.norm(some / scales - search.points[farthest], axis=1))
    apart = len(scales) ** 0.5
    lengths = [factor * apart for factor in _LENGTHSCALES]
    if 0 < _OF_NEAREST * distance < _FEWER * apart:
        lengths.append(_OF_NEAREST * float(distance))
    for length, share in itertools.product(lengths, _NOISE_SHARES):
        yield share, length * scales


def assign(
    conditionals: Conditionals, noise_share: float, lengthscales: Array, total: float
) -> None:
    """Give start values to the parameters that are trainable.

    :param total: The variance that features and mean leave.
    """
    kernel = conditionals.local_kernel
    lengthscales = lengthscales / getattr(kernel, "middle", 1.0)
    if kernel.lengthscales.shape == ():
        lengthscales = np.sqrt(np.mean(np.square(lengthscales)))
    if kernel.lengthscales.trainable:
        kernel.lengthscales.assign(lengthscales)
    if kernel.variance.trainable:
        kernel.variance.assign((1 - noise_share) * total)
    conditionals.assign_noise(noise_share * total)
