"""Frequencies for the Fourier features of a harmonizable component."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from ..kernels.harmonizable_component import HarmonizableComponent
from ..sphere._typing import Array, ComplexArray

_CANDIDATES = 512
_WIDTH = 3.0
_RELATIVE_NUGGET = 1e-10


def select_frequencies(kernel: HarmonizableComponent, num_frequencies: int) -> Array:
    """Frequencies picked one by one where most of the transform's variance is left.

    :param num_frequencies: How many.
    :return: ``[num_frequencies, D]``.
    :raises ValueError: If there are not that many candidates.
    """
    candidates = _candidates(kernel)
    if not 1 <= num_frequencies <= len(candidates):
        raise ValueError(
            f"num_frequencies must be between 1 and {len(candidates)}, found {num_frequencies}."
        )
    same, opposite = (_complex(kernel, candidates, sign * candidates) for sign in (1.0, -1.0))
    residual = np.block(
        [
            [(same + opposite).real, (opposite - same).imag],
            [(same + opposite).imag, (same - opposite).real],
        ]
    )
    residual /= np.max(np.diag(residual))
    count = len(candidates)
    chosen: list[int] = []
    for _ in range(num_frequencies):
        variances = np.diag(residual)
        left = variances[:count] + variances[count:]
        left[chosen] = -np.inf
        chosen.append(int(np.argmax(left)))
        for row in (chosen[-1], count + chosen[-1]):
            if residual[row, row] > _RELATIVE_NUGGET:
                column = residual[:, row] / np.sqrt(residual[row, row])
                residual = residual - np.outer(column, column)
    selected: Array = candidates[chosen]
    return selected


def _complex(kernel: HarmonizableComponent, w: Array, v: Array) -> ComplexArray:
    real, imaginary = kernel.density_about_centre(w, v)
    density: ComplexArray = real.numpy().astype(complex)
    if imaginary is not None:
        density.imag = imaginary.numpy()
    return density


def _candidates(kernel: HarmonizableComponent) -> Array:
    """A box about each frequency of the kernel, as wide as its density, in the half space that
    holds one of w and -w; and zero."""
    deviations = np.sqrt(np.diag(kernel.scaled_lag().numpy()))
    centres = kernel.frequencies.numpy()
    per_centre = max(1, _CANDIDATES // len(centres))
    if kernel.dimension == 1:
        unit = np.linspace(-1, 1, per_centre + 1)[:, None]
    else:
        unit = 2 * qmc.Halton(kernel.dimension, scramble=False).random(per_centre) - 1
    boxes = [centre + _WIDTH * deviations * unit for centre in centres]
    points = np.concatenate([np.zeros([1, kernel.dimension]), *boxes])
    leading = points[np.arange(len(points)), np.argmax(points != 0, axis=1)]
    points = np.where(leading[:, None] < 0, -points, points)
    scale = np.max(np.abs(points))
    distinct: Array = scale * np.unique((points / scale).round(12), axis=0)
    return distinct
