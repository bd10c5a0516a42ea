"""Initial windows and frequencies of spectral mixtures, from gridded or scattered data."""

from __future__ import annotations

from typing import Literal

import numpy as np
from gpflow.base import TensorType
from scipy.optimize import minimize
from scipy.stats import qmc

from ..._arguments import Array, choice, finite_array, integer, refusal
from ...core.clustering import k_means

_WIDTHS_OF_A_CLUSTER = 2.4
"""The standard deviation of a window, relative to that of the rows nearest to its centre. On a
grid, it is 0.7 of the distance between centres, and the sum of the windows hardly varies."""

_LEAST_SHARE = 0.02
"""The smallest initial share of a component's variance for a frequency."""

_MAX_ROWS = 4_000
_MAX_CANDIDATES = 4_096
_STEPS_PER_RESOLUTION = 4


def guess_components(
    X: TensorType,
    Y: TensorType,
    num_components: int,
    num_frequencies: int,
    centres: Literal["k-means", "grid"],
    seed: int,
) -> list[tuple[Array, Array, Array, Array]]:
    """The centre and the precision of each component's window, its frequencies and variances.

    :raises ValueError: As for :meth:`interdomain.kernels.HarmonizableMixture.from_data`.
    """
    X, Y = validate_rows(X, Y, seed)
    count = _count("num_components", num_components, X)
    num_frequencies = _count("num_frequencies", num_frequencies, X)
    total, parts = np.zeros(len(X)), []
    for centre, width in zip(*place_windows(X, count, centres, seed), strict=True):
        window = np.exp(-np.sum(np.square((X - centre) / width), axis=1) / 2)
        frequencies, powers = find_peaks(X, Y, window, width, num_frequencies)
        local = np.sum(window[:, None] * np.square(Y)) / np.sum(window) / Y.shape[1]
        variances = local * _shares(powers)
        total += window * np.sum(variances)
        parts.append((centre, 1 / np.square(2 * np.pi * width), frequencies, variances))
    # The components overlap, so the sum of their variances is scaled to that of the data.
    scale = np.mean(np.square(Y)) / np.mean(total)
    return [(*part, scale * variances) for *part, variances in parts]


def guess_peaks(
    X: TensorType, Y: TensorType, num_peaks: int, seed: int
) -> tuple[Array, Array, Array]:
    """The frequencies of all data, their variances, and the inputs' standard deviations ``[D]``.

    :raises ValueError: As for :meth:`interdomain.kernels.SpectralMixture.from_data`.
    """
    X, Y = validate_rows(X, Y, seed)
    widths = np.std(X, axis=0)
    count = _count("num_components", num_peaks, X)
    frequencies, powers = find_peaks(X, Y, np.ones(len(X)), widths, count)
    return frequencies, np.mean(np.square(Y)) * _shares(powers), widths


def _shares(powers: Array) -> Array:
    """The share of the variance of each frequency."""
    shares = np.maximum(powers / np.sum(powers), _LEAST_SHARE)
    return np.asarray(shares / np.sum(shares))


def _count(name: str, value: object, X: Array) -> int:
    """The count, if it is from 1 to the number of rows; a ValueError otherwise."""
    remedy = "pass more rows, or a smaller number"
    return integer(name, value, at_least=1, at_most=len(X), remedy=remedy)


def place_windows(
    X: Array, count: int, centres: Literal["k-means", "grid"], seed: int
) -> tuple[Array, Array]:
    """The centres ``[P, D]`` of the windows, and the windows' standard deviations ``[P, D]``."""
    if choice("centres", centres, ("k-means", "grid")) == "grid":
        return _grid(X, count)
    places = k_means(X, count, seed=seed).astype(float)
    nearest = np.argmin(np.sum(np.square(X[:, None] - places), axis=-1), axis=1)
    squares = np.square(X - places[nearest])
    within = np.sqrt(np.mean(squares, axis=0))
    clusters = [squares[nearest == p] for p in range(count)]
    widths = np.stack(
        [np.sqrt(np.mean(own, axis=0)) if len(own) > 1 else within for own in clusters]
    )
    # A lower bound of the widths, for clusters that are thin in some direction.
    widths = np.maximum(widths, 0.3 * np.maximum(within, 0.05 * np.std(X, axis=0)))
    return places, _WIDTHS_OF_A_CLUSTER * widths


def _grid(X: Array, count: int) -> tuple[Array, Array]:
    """The centres of equal cells of the box around the data, and the standard deviations.

    :raises ValueError: If the number of cells is not the same in all dimensions.
    """
    dimension = X.shape[1]
    per_side = round(count ** (1 / dimension))
    if per_side**dimension != count:
        remedy = f"pass for example {per_side**dimension}"
        rule = f"be n^{dimension}, for an integer n, for a grid in {dimension} dimensions"
        raise refusal("num_components", rule, count, remedy)
    lower, cell = np.min(X, axis=0), np.ptp(X, axis=0) / per_side
    places = np.indices([per_side] * dimension).reshape(dimension, -1).T + 0.5
    widths = np.broadcast_to(_WIDTHS_OF_A_CLUSTER * cell / np.sqrt(12), places.shape)
    return lower + cell * places, widths.copy()


def validate_rows(X: TensorType, Y: TensorType, seed: int) -> tuple[Array, Array]:
    """Inputs ``[N, D]`` and outputs ``[N, P]``; for many rows, a random sample.

    :raises ValueError: If an entry is not finite, a column of X does not vary, or Y is zero.
    """
    inputs = finite_array("X", X, (2,), "a matrix [N, D]")
    outputs = finite_array("Y", Y, (1, 2), "[N] or [N, P]").reshape(len(inputs), -1)
    constant = np.flatnonzero(np.ptp(inputs, axis=0) == 0).tolist()
    if constant or not np.any(outputs):
        found = f"constant columns {constant} of X" if constant else "a Y of zeros alone"
        remedy = "leave them out, because what does not vary has no frequencies"
        raise refusal("X and Y", "vary", found, remedy)
    if len(inputs) > _MAX_ROWS:
        rows = np.random.default_rng(seed).choice(len(inputs), _MAX_ROWS, replace=False)
        return inputs[rows], outputs[rows]
    return inputs, outputs


def find_peaks(
    X: Array, Y: Array, window: Array, widths: Array, num_peaks: int
) -> tuple[Array, Array]:
    """The frequencies of the sinusoids that explain most of the data under a window.

    Each sinusoid is fitted by weighted least squares to the residual of the previous ones: the
    periodogram of Lomb and Scargle, for several outputs and dimensions. The search starts from a
    grid of frequencies, from zero to the resolution of the rows. Then all are fitted together.

    :param window: The weight of each row ``[N]``.
    :param widths: The standard deviation of the window in each dimension ``[D]``; the resolution in
        frequency is ``1 / (2 pi widths)``.
    :param num_peaks: The number Q of sinusoids.
    :return: Frequencies ``[Q, D]``, and the mean square of the data that each explains, ``[Q]``.
    """
    candidates = _candidates(X, widths)
    weights = window / np.sum(window)
    chosen: list[Array] = []
    residual = Y
    for _ in range(num_peaks):
        explained = _explained(candidates, X, residual, weights)
        best = _refine(candidates[np.argmax(explained)], X, residual, weights, widths)
        if _is_among([np.zeros_like(best)], best, widths):
            best = np.zeros_like(best)
        if _is_among(chosen, best, widths):
            # The maximum is the rest of a chosen peak: choose the best candidate elsewhere.
            taken = np.array([_is_among(chosen, candidate, widths) for candidate in candidates])
            best = candidates[np.argmax(np.where(taken, -np.inf, explained))]
        chosen.append(best)
        residual = Y - _fit(np.stack(chosen), X, Y, weights)[0]
    frequencies = np.stack(chosen)
    _, powers = _fit(frequencies, X, Y, weights)
    order = np.argsort(powers)[::-1]
    return frequencies[order], powers[order]


def _candidates(X: Array, widths: Array) -> Array:
    ranges = np.ptp(X, axis=0)
    num_rows, dimension = X.shape
    highest = num_rows ** (1 / dimension) / (2 * ranges)
    if dimension == 1:
        step = 1 / (2 * np.pi * widths * _STEPS_PER_RESOLUTION)
        count = int(np.clip(np.ceil(highest / step)[0], 1, _MAX_CANDIDATES))
        return np.asarray(np.linspace(0, highest, count + 1))
    points = qmc.Halton(dimension, scramble=False).random(_MAX_CANDIDATES)
    # Only one of w and -w, with a positive first entry. The first point of the sequence is zero.
    box = highest * (2 * points - 1)
    box[:, 0] = highest[0] * points[:, 0]
    return np.concatenate([np.zeros([1, dimension]), box[1:]])


def _explained(frequencies: Array, X: Array, residual: Array, weights: Array) -> Array:
    """The weighted sum of squares that the cosine and sine of each frequency explain."""
    angle = 2 * np.pi * X @ frequencies.T
    cosine, sine = np.cos(angle), np.sin(angle)
    weighted = weights[:, None] * residual
    with_cosine, with_sine = cosine.T @ weighted, sine.T @ weighted
    cc, ss, cs = weights @ cosine**2, weights @ sine**2, weights @ (cosine * sine)
    determinant = cc * ss - cs**2
    squares, products = np.sum(with_cosine**2, axis=1), np.sum(with_cosine * with_sine, axis=1)
    both = ss * squares + cc * np.sum(with_sine**2, axis=1) - 2 * cs * products
    # Only the cosine is used at zero, and if cosine and sine are collinear at the rows.
    single, regular = squares / np.maximum(cc, 1e-12), determinant > 1e-6
    return np.asarray(np.where(regular, both / np.where(regular, determinant, 1), single))


def _refine(start: Array, X: Array, residual: Array, weights: Array, widths: Array) -> Array:
    """The maximum of the periodogram near a point of the grid; zero is returned unchanged."""
    if not np.any(start):
        return start
    scale = 1 / (2 * np.pi * widths)

    def lost(offset: Array) -> float:
        return -float(_explained((start + scale * offset)[None], X, residual, weights)[0])

    simplex = np.concatenate([np.zeros([1, len(start)]), 0.25 * np.eye(len(start))])
    highest = minimize(
        lost,
        np.zeros(len(start)),
        method="Nelder-Mead",
        bounds=[(-1, 1)] * len(start),
        options={"initial_simplex": simplex, "xatol": 1e-3, "maxiter": 50 * len(start)},
    )
    return np.asarray(start + scale * highest.x)


def _is_among(chosen: list[Array], frequency: Array, widths: Array) -> bool:
    """Whether a chosen frequency is within a tenth of the resolution of a frequency or minus it."""
    gaps = [frequency - sign * other for other in chosen for sign in (1, -1)]
    return any(np.max(np.abs(10 * 2 * np.pi * widths * gap)) < 1 for gap in gaps)


def _fit(frequencies: Array, X: Array, Y: Array, weights: Array) -> tuple[Array, Array]:
    """The joint least-squares fit of all sinusoids, ``[N, P]``, and the mean square of each."""
    angle = 2 * np.pi * X @ frequencies.T
    design = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
    root = np.sqrt(weights)[:, None]
    coefficients = np.linalg.lstsq(root * design, root * Y, rcond=1e-6)[0]
    squares = np.sum(np.square(coefficients), axis=1)
    powers = np.sum(squares.reshape(2, len(frequencies)), axis=0)
    powers = np.where(np.any(frequencies, axis=1), powers / 2, powers)
    return design @ coefficients, powers
