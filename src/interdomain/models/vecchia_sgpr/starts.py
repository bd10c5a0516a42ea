"""Initial values of a local kernel from the data, for any units of X and Y."""

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
"""The noise variances of the starts, as shares of the variance of the residuals."""

_LENGTHSCALES = (1.0, 0.3)
"""The lengthscales of the starts, in units of the distance of random rows."""

_OF_NEAREST, _FEWER = 2.0, 0.1
"""The shortest lengthscale of the starts, in units of the distance of the nearest rows. It is left
out unless it is below the second number, in units of the distance of random rows."""

_ROWS_LOOKED_AT = 500


def first_kernel(X: Array, Y: Array, inputs: str, columns: ActiveDims | None) -> Kernel:
    """A Matérn-3/2 kernel with lengthscales in proportion to the columns' standard deviations.

    :param columns: The columns of X that the kernel uses; None for all.
    """
    scales = deviations(LocalKernel(Matern32(active_dims=columns), inputs).points(X))
    lengthscales = _LENGTHSCALES[1] * len(scales) ** 0.5 * scales
    if inputs == "degrees":
        lengthscales = np.sqrt(np.mean(lengthscales**2))
    variance = float(np.mean(np.var(np.asarray(Y, np.float64), axis=0)))
    return Matern32(variance if variance > 0 else 1.0, lengthscales, active_dims=columns)


def deviations(points: Array) -> Array:
    """The standard deviations of coordinates ``[N, d]``, ``[d]``; 1 for a constant coordinate."""
    coordinates = np.asarray(points, np.float64)
    values = np.std(coordinates, axis=0)
    constant = values <= 1e-12 * np.max(np.abs(coordinates), axis=0)
    return np.where(constant, 1.0, values)


def is_default(kernel: Kernel) -> bool:
    """Whether all lengthscales are one, GPflow's default, which does not depend on the data."""
    return bool(np.all(kernel.lengthscales.numpy() == 1.0))


def starts(points: Array, number: int) -> Iterator[tuple[float, Array]]:
    """The starts: pairs of the noise's share of the variance, and lengthscales ``[d]``.

    :param points: The coordinates of rows ``[N, d]``.
    :param number: The number of neighbours, whose distances give the shortest lengthscales.
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
    """Assign start values to the trainable parameters.

    :param total: The mean square of the residuals, which variance and noise share.
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
