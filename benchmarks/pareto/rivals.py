"""Two baselines: boosted trees with a Student-t density, and an equispaced Fourier GP."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import t as student

from benchmarks._lib.data import Array
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows
from benchmarks._lib.runner import Entries
from benchmarks._lib.splits import seeded_rows

HIGHEST = 101
"""The highest frequency of each axis, in steps: 203^2 waves. FFTs of 4 * 101 + 1 are quick."""
PERIOD = 1.5
"""The period of the waves, in ranges of the data."""
EVALUATIONS = 30
SMOOTHNESS = 1.5
TOLERANCE, MOST_STEPS = 1e-4, 500
"""The relative residual and the number of steps at which the conjugate gradients end."""


def trees_with_student_t(train: Rows, held_out: Rows) -> Entries:
    """Boosted trees for the mean, boosted trees for the scale, and a Student-t of scaled residuals.

    Residuals are those of five folds. A second model (Gamma loss) predicts their absolute values.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor as Trees
    from sklearn.model_selection import KFold, cross_val_predict

    started = time.process_time()
    (X, Y), folds = train, KFold(5, shuffle=True, random_state=0)
    residuals = Y[:, 0] - cross_val_predict(Trees(random_state=0), X, Y[:, 0], cv=folds)
    spread = np.abs(residuals) + 1e-6 * np.std(residuals)
    scales = Trees(loss="gamma", random_state=0)
    freedom, _, factor = student.fit(
        residuals / cross_val_predict(scales, X, spread, cv=folds), floc=0.0
    )
    mean, scale = Trees(random_state=0).fit(X, Y[:, 0]), scales.fit(X, spread)
    seconds = time.process_time() - started
    error = held_out[1][:, 0] - mean.predict(held_out[0])
    density = student.logpdf(error, freedom, scale=factor * scale.predict(held_out[0]))
    point = {
        "seconds": seconds,
        "log_density": float(np.mean(density)),
        "rmse": float(np.sqrt(np.mean(np.square(error)))),
    }
    return {"trace": [point], "error": None, "freedom": float(freedom)}


def equispaced_fourier(train: Rows, held_out: Rows, highest: int = HIGHEST) -> Entries:
    """An equispaced Fourier GP with a Matern-3/2 (Greengard, Rachh and Barnett 2022), 2-D.

    Nonuniform FFTs sum the rows into a Toeplitz matrix, and conjugate gradients find the weights.
    The lengthscale and the noise have the least error on a tenth of the rows; the variance of
    predictions is that of the errors there. (The paper takes hyperparameters as given.)
    """
    started = time.process_time()
    low, extent = train[0].min(0), np.ptp(train[0], axis=0).max()

    def angles(X: Array) -> Array:
        return 2 * np.pi / PERIOD * (X - low) / extent

    fitted, apart = seeded_rows(len(train[0]), 0)
    waves = _Waves(angles(train[0][fitted]), train[1][fitted, 0], highest)
    there, target = angles(train[0][apart]), train[1][apart, 0]

    def loss(logarithms: Array) -> float:
        return float(np.mean(np.square(target - waves.predict(there, *np.exp(logarithms)))))

    options = {"maxfev": EVALUATIONS, "xatol": 0.05, "fatol": 1e-6}
    best = minimize(loss, np.log([0.1, 0.01]), method="Nelder-Mead", options=options)
    seconds = time.process_time() - started
    mean = waves.predict(angles(held_out[0]), *np.exp(best.x))[:, None]
    errors = gaussian_errors(held_out[1], mean, np.full_like(mean, best.fun))
    point = {"seconds": seconds, "log_density": -errors["nll"], "rmse": errors["rmse"]}
    return {"trace": [point], "error": None, "lengthscale": float(np.exp(best.x[0]))}


class _Waves:
    """Sums over rows of the waves, and the mean of f for any lengthscale and noise."""

    def __init__(self, angles: Array, Y: Array, highest: int) -> None:
        self._axis = np.arange(-highest, highest + 1)
        self._shape = (2 * highest + 1,) * 2
        size = (4 * highest + 1,) * 2
        differences = _sums(angles, np.ones(len(Y)), size)
        self._transform = np.fft.fft2(np.fft.ifftshift(differences))
        self._targets = _sums(angles, Y, self._shape)

    def predict(self, angles: Array, lengthscale: float, noise: float) -> Array:
        """The mean of f.

        :param lengthscale: in ranges of the data; `noise` is a share of the kernel's variance.
        """
        import finufft

        roots = np.sqrt(_spectral_density(self._axis, lengthscale))
        weights = roots * self._solve(roots, noise)
        found = finufft.nufft2d2(*_columns(angles), weights, isign=1, eps=1e-8)
        return np.asarray(found.real)

    def _solve(self, roots: Array, noise: float) -> Any:
        """Conjugate gradients for (D T D + noise I) w = D Phi^H y."""

        def product(weights: Any) -> Any:
            spread = np.fft.fft2(roots * weights, self._transform.shape)
            summed = np.fft.ifft2(spread * self._transform)[: roots.shape[0], : roots.shape[1]]
            return roots * summed + noise * weights

        residual = roots * self._targets
        weights, direction = np.zeros_like(residual), residual
        squared = np.vdot(residual, residual).real
        goal = TOLERANCE**2 * squared
        for _ in range(MOST_STEPS):
            if squared <= goal:
                break
            image = product(direction)
            step = squared / np.vdot(direction, image).real
            weights, residual = weights + step * direction, residual - step * image
            squared, before = np.vdot(residual, residual).real, squared
            direction = residual + squared / before * direction
        return weights


def _sums(angles: Array, values: Array, shape: tuple[int, ...]) -> Any:
    """The sums over rows of values times exp(-i k . angles), for all k up to the highest."""
    import finufft

    return finufft.nufft2d1(*_columns(angles), values.astype(complex), shape, isign=-1, eps=1e-8)


def _columns(angles: Array) -> tuple[Array, ...]:
    return tuple(np.ascontiguousarray(column) for column in angles.T)


def _spectral_density(axis: Array, lengthscale: float) -> Array:
    """The variances of the waves under a 2-D Matern kernel of variance 1."""
    squared = np.add.outer(np.square(axis), np.square(axis)) / PERIOD**2
    decay = 2 * SMOOTHNESS / lengthscale**2
    logarithm = (
        np.log(4 * np.pi)
        + gammaln(SMOOTHNESS + 1)
        - gammaln(SMOOTHNESS)
        + SMOOTHNESS * np.log(decay)
        - (SMOOTHNESS + 1) * np.log(decay + 4 * np.pi**2 * squared)
    )
    return np.asarray(np.exp(logarithm) / PERIOD**2)
