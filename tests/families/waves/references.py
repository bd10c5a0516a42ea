"""Periodized kernels computed apart from the library: loops over images, and closed forms."""

import itertools
from collections.abc import Callable

import gpflow
import numpy as np
from gpflow.kernels import Kernel, Matern12, Matern32, Matern52, SquaredExponential

LOWER = np.array([-0.3, 0.2, -1.0, 0.5])
PERIODS = np.array([1.7, 2.3, 1.1, 1.5])
UPPER = LOWER + PERIODS
LENGTHSCALES = np.array([0.11, 0.17, 0.08, 0.12])
KINDS = {kind.__name__: kind for kind in (Matern12, Matern32, Matern52, SquaredExponential)}

SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Matern12": lambda r: np.exp(-r),
    "Matern32": lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    "Matern52": lambda r: (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r),
    "SquaredExponential": lambda r: np.exp(-(r**2) / 2),
}
VARIANCE = 1.3


def stationary(name: str, num_columns: int = 1, scale: float = 1.0, **options: object) -> Kernel:
    """A stationary kernel with one lengthscale for each column."""
    lengthscales = scale * LENGTHSCALES[:num_columns]
    return KINDS[name](variance=VARIANCE, lengthscales=lengthscales, **options)


def lags(num_columns: int, count: int = 7) -> np.ndarray:
    """Differences of points of the box, beyond half of its period too."""
    return (
        np.random.default_rng(3).uniform(-0.95, 0.95, [count, num_columns])
        * (PERIODS[:num_columns])
    )


def images(
    function: Callable[[np.ndarray], np.ndarray], tau: np.ndarray, periods: np.ndarray, reach: int
) -> np.ndarray:
    """``sum_n function(tau + n P)`` over ``|n_i| <= reach``, one after the other."""
    total = np.zeros(len(tau))
    for n in itertools.product(range(-reach, reach + 1), repeat=len(periods)):
        total += function(tau + np.array(n) * periods)
    return total


def shape(name: str, tau: np.ndarray, lengthscales: np.ndarray) -> np.ndarray:
    """The kernel itself at differences ``[N, D]``, of variance one."""
    return SHAPES[name](np.sqrt(np.sum((tau / lengthscales) ** 2, axis=1)))


def value(kernel: Kernel, tau: np.ndarray) -> np.ndarray:
    """A periodized kernel at differences of inputs."""
    start = np.full([1, tau.shape[1]], 0.1, gpflow.default_float())
    return kernel(start + tau, start).numpy()[:, 0]
