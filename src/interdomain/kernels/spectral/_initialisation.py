"""Windows and frequencies that data suggest for spectral mixtures."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from gpflow.base import TensorType

from ..._arguments import finite_array, integer
from ...sphere._typing import Array
from .._clustering import k_means
from ._periodogram import Peaks, Rows, find_peaks, validate_rows

_WIDTHS_OF_A_CLUSTER = 2.4
"""The standard deviation of a window in those of the rows that are nearest to its centre: 0.7 of
the distance between centres on a grid, where the sum of the windows hardly varies."""

_LEAST_SHARE = 0.02
"""The least share of a component's variance that a frequency starts with."""


class Windows(NamedTuple):
    """Centres ``[P, D]`` and standard deviations ``[P, D]``."""

    centres: Array
    widths: Array


class Guess(NamedTuple):
    """What a component starts with; ``envelope`` is the precision of its window."""

    centre: Array
    envelope: Array
    frequencies: Array
    variances: Array


def guess_components(
    X: TensorType,
    Y: TensorType,
    num_components: int,
    num_frequencies: int,
    centres: Literal["k-means", "grid"] | TensorType,
    seed: int,
) -> list[Guess]:
    """For each centre its window, and the frequencies of the data under it.

    :raises ValueError: As for :meth:`interdomain.kernels.HarmonizableMixture.from_data`.
    """
    rows = validate_rows(X, Y, seed)
    count = _count("num_components", num_components, rows)
    num_frequencies = _count("num_frequencies", num_frequencies, rows)
    windows = place_windows(rows.X, count, centres, seed)
    total = np.zeros(len(rows.X))
    parts: list[tuple[Array, Peaks]] = []
    for centre, width in zip(*windows, strict=True):
        window = np.exp(-np.sum(np.square((rows.X - centre) / width), axis=1) / 2)
        peaks = find_peaks(rows, window, width, num_frequencies)
        shares = np.maximum(peaks.powers / np.sum(peaks.powers), _LEAST_SHARE)
        local = np.sum(window[:, None] * np.square(rows.Y)) / np.sum(window) / rows.Y.shape[1]
        variances = local * shares / np.sum(shares)
        total += window * np.sum(variances)
        parts.append((variances, peaks))
    # The components overlap: together they have the variance of the data.
    scale = np.mean(np.square(rows.Y)) / np.mean(total)
    return [
        Guess(centre, 1 / np.square(2 * np.pi * width), peaks.frequencies, scale * variances)
        for centre, width, (variances, peaks) in zip(*windows, parts, strict=True)
    ]


def guess_peaks(X: TensorType, Y: TensorType, num_peaks: int, seed: int) -> tuple[Peaks, Array]:
    """Peaks of the spectrum of all data, and the data's standard deviations ``[D]``.

    :raises ValueError: As for :meth:`interdomain.kernels.SpectralMixture.from_data`.
    """
    rows = validate_rows(X, Y, seed)
    count = _count("num_components", num_peaks, rows)
    widths = np.std(rows.X, axis=0)
    peaks = find_peaks(rows, np.ones(len(rows.X)), widths, count)
    shares = np.maximum(peaks.powers / np.sum(peaks.powers), _LEAST_SHARE)
    powers = np.mean(np.square(rows.Y)) * shares / np.sum(shares)
    return Peaks(peaks.frequencies, powers), widths


def _count(name: str, value: object, rows: Rows) -> int:
    """:raises ValueError: If it is not positive, or above the number of rows."""
    return integer(
        name, value, at_least=1, at_most=len(rows.X), remedy="data of so few rows suggest no more"
    )


def place_windows(
    X: Array, count: int, centres: Literal["k-means", "grid"] | TensorType, seed: int
) -> Windows:
    """Centres, and windows as wide as what is around them.

    :raises ValueError: If ``centres`` has another form, or there are fewer rows than centres.
    """
    if isinstance(centres, str):
        if centres == "grid":
            return _grid(X, count)
        if centres != "k-means":
            raise ValueError(
                f'centres must be "k-means", "grid" or an array [P, D], found {centres!r}; pass '
                "one of these."
            )
        places = k_means(X, count, seed=seed).astype(float)
    else:
        places = finite_array("centres", centres, (2,), "a matrix [P, D]")
        if places.shape != (count, X.shape[1]):
            raise ValueError(
                f"centres must be [{count}, {X.shape[1]}], one row for each component, found shape "
                f"{places.shape}; pass a centre for each."
            )
    distances = np.sum(np.square(X[:, None] - places), axis=-1)
    nearest = np.argmin(distances, axis=1)
    within = np.sqrt(np.mean(np.square(X - places[nearest]), axis=0))
    widths = np.stack(
        [
            np.sqrt(np.mean(np.square(X[nearest == p] - places[p]), axis=0))
            if np.sum(nearest == p) > 1
            else within
            for p in range(count)
        ]
    )
    # Clusters that are thin in some direction are not to have windows that see nothing else.
    widths = np.maximum(widths, 0.3 * np.maximum(within, 0.05 * np.std(X, axis=0)))
    return Windows(places, _WIDTHS_OF_A_CLUSTER * widths)


def _grid(X: Array, count: int) -> Windows:
    """The centres of equal cells of the box around the data.

    :raises ValueError: If the cells are not equally many in all dimensions.
    """
    dimension = X.shape[1]
    per_side = round(count ** (1 / dimension))
    if per_side**dimension != count:
        raise ValueError(
            f"num_components must be n^{dimension}, for an integer n, for a grid in {dimension} "
            f"dimensions, found {count}; pass for example {per_side**dimension}."
        )
    lower, cell = np.min(X, axis=0), np.ptp(X, axis=0) / per_side
    places = np.stack(
        np.meshgrid(*[np.arange(per_side) + 0.5] * dimension, indexing="ij"), axis=-1
    ).reshape(-1, dimension)
    widths = np.broadcast_to(_WIDTHS_OF_A_CLUSTER * cell / np.sqrt(12), places.shape)
    return Windows(lower + cell * places, widths.copy())
