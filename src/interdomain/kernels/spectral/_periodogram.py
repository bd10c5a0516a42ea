"""Frequencies in data, gridded or scattered, as seen through a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from gpflow.base import TensorType
from scipy.optimize import minimize
from scipy.stats import qmc

from ..._arguments import finite_array
from ...sphere._typing import Array

_MAX_ROWS = 4_000
_MAX_CANDIDATES = 4_096
_STEPS_PER_RESOLUTION = 4


class Peaks(NamedTuple):
    """Frequencies ``[Q, D]`` and the mean square of the data that each explains ``[Q]``."""

    frequencies: Array
    powers: Array


class Rows(NamedTuple):
    """Inputs ``[N, D]`` and outputs ``[N, P]``."""

    X: Array
    Y: Array


def validate_rows(X: TensorType, Y: TensorType, seed: int) -> Rows:
    """Both as arrays; of many rows a random sample.

    :raises ValueError: If shapes do not fit, an entry is not finite, or a column does not vary.
    """
    inputs = finite_array("X", X, (2,), "a matrix [N, D]")
    outputs = finite_array("Y", Y, (1, 2), "[N] or [N, P]")
    outputs = outputs[:, None] if outputs.ndim == 1 else outputs
    if len(inputs) != len(outputs) or len(inputs) < 2:
        raise ValueError(
            "X and Y must have equal numbers of rows, two or more, found "
            f"{len(inputs)} and {len(outputs)}; pass a row of Y for each row of X."
        )
    constant = np.flatnonzero(np.ptp(inputs, axis=0) == 0)
    if len(constant):
        raise ValueError(
            f"X must vary in every column, found constant columns {constant.tolist()}; pass X "
            "without them."
        )
    if not np.any(outputs):
        raise ValueError(
            "Y must vary, found zeros alone, in which there are no frequencies; pass other values."
        )
    if len(inputs) > _MAX_ROWS:
        rows = np.random.default_rng(seed).choice(len(inputs), _MAX_ROWS, replace=False)
        return Rows(inputs[rows], outputs[rows])
    return Rows(inputs, outputs)


def find_peaks(rows: Rows, window: Array, widths: Array, num_peaks: int) -> Peaks:
    """The sinusoids that explain most of the data under a window, one after the other.

    Each is fitted by weighted least squares to what those before it leave (the periodogram of Lomb
    and Scargle, of several outputs and dimensions), starting from a grid of frequencies, zero among
    them, up to what the density of the rows resolves; then all are fitted together.

    :param window: The weight of each row ``[N]``.
    :param widths: The standard deviation of the window in each dimension ``[D]``: frequencies
        nearer to each other than its inverse are not told apart.
    :param num_peaks: How many.
    """
    candidates = _candidates(rows.X, widths)
    weights = window / np.sum(window)
    chosen: list[Array] = []
    residual = rows.Y
    for _ in range(num_peaks):
        explained = _explained(candidates, rows.X, residual, weights)
        best = candidates[np.argmax(explained)]
        best = _refine(best, rows.X, residual, weights, widths)
        if _indistinct(best, np.zeros_like(best), widths):
            best = np.zeros_like(best)
        if any(_indistinct(best, other, widths) for other in chosen):
            # What is left of a peak that has been taken: the next one is elsewhere.
            apart = np.array(
                [not any(_indistinct(c, other, widths) for other in chosen) for c in candidates]
            )
            best = candidates[np.argmax(np.where(apart, explained, -np.inf))]
        chosen.append(best)
        residual = rows.Y - _fit(np.stack(chosen), rows.X, rows.Y, weights)[0]
    frequencies = np.stack(chosen)
    _, powers = _fit(frequencies, rows.X, rows.Y, weights)
    order = np.argsort(powers)[::-1]
    return Peaks(frequencies[order], powers[order])


def _candidates(X: Array, widths: Array) -> Array:
    ranges = np.ptp(X, axis=0)
    num_rows, dimension = X.shape
    highest = num_rows ** (1 / dimension) / (2 * ranges)
    if dimension == 1:
        step = 1 / (2 * np.pi * widths * _STEPS_PER_RESOLUTION)
        count = int(np.clip(np.ceil(highest / step)[0], 1, _MAX_CANDIDATES))
        grid: Array = np.linspace(0, highest, count + 1)
        return grid
    points = qmc.Halton(dimension, scramble=False).random(_MAX_CANDIDATES)
    # One of w and -w: the half with a first entry above zero. The first point is zero.
    box = highest * (2 * points - 1)
    box[:, 0] = highest[0] * points[:, 0]
    return np.concatenate([np.zeros([1, dimension]), box[1:]])


def _explained(frequencies: Array, X: Array, residual: Array, weights: Array) -> Array:
    """The weighted sum of squares that cosine and sine of each frequency explain."""
    angle = 2 * np.pi * X @ frequencies.T
    cosine, sine = np.cos(angle), np.sin(angle)
    weighted = weights[:, None] * residual
    with_cosine, with_sine = cosine.T @ weighted, sine.T @ weighted
    cc, ss, cs = weights @ cosine**2, weights @ sine**2, weights @ (cosine * sine)
    determinant = cc * ss - cs**2
    both = (
        ss * np.sum(with_cosine**2, axis=1)
        + cc * np.sum(with_sine**2, axis=1)
        - 2 * cs * np.sum(with_cosine * with_sine, axis=1)
    )
    # At zero (and wherever the rows cannot tell the two apart) there is only one of them.
    single = np.sum(with_cosine**2, axis=1) / np.maximum(cc, 1e-12)
    regular = determinant > 1e-6
    explained: Array = np.where(regular, both / np.where(regular, determinant, 1), single)
    return explained


def _refine(start: Array, X: Array, residual: Array, weights: Array, widths: Array) -> Array:
    """The highest point of the periodogram near a point of the grid; zero stays."""
    if not np.any(start):
        return start
    scale = 1 / (2 * np.pi * widths)

    def lost(offset: Array) -> float:
        return -float(_explained((start + scale * offset)[None], X, residual, weights)[0])

    simplex = np.concatenate([np.zeros([1, len(start)]), 0.25 * np.eye(len(start))])
    result = minimize(
        lost,
        np.zeros(len(start)),
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 1e-3, "maxiter": 50 * len(start)},
    )
    moved = start + scale * np.clip(result.x, -1, 1)
    refined: Array = moved if lost((moved - start) / scale) <= lost(np.zeros(len(start))) else start
    return refined


def _indistinct(first: Array, second: Array, widths: Array) -> bool:
    """Whether two frequencies, or one and the negative of the other, are nearer than a tenth of
    what the window resolves."""
    scale = 10 * 2 * np.pi * widths
    return bool(min(np.max(np.abs(scale * (first - s * second))) for s in (1, -1)) < 1)


def _fit(frequencies: Array, X: Array, Y: Array, weights: Array) -> tuple[Array, Array]:
    """What all sinusoids together explain ``[N, P]``, and the mean square of each."""
    angle = 2 * np.pi * X @ frequencies.T
    design = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    root = np.sqrt(weights)[:, None]
    coefficients = np.linalg.lstsq(root * design, root * Y, rcond=1e-6)[0]
    squares = np.sum(np.square(coefficients), axis=1)
    powers = np.sum(squares.reshape(2, len(frequencies)), axis=0)
    powers = np.where(np.any(frequencies, axis=1), powers / 2, powers)
    return design @ coefficients, powers
