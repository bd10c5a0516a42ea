"""Frequencies for the Fourier features of a harmonizable component."""

from __future__ import annotations

from functools import singledispatch

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from scipy.stats import qmc

from .._arguments import integer
from ..kernels import HarmonizableComponent
from ..kernels.spectral._algebra import densities
from ..sphere._typing import Array, ComplexArray

_CANDIDATES = 512
_WIDTH = 3.0
_RELATIVE_NUGGET = 1e-10


@singledispatch
def select_frequencies(kernel: Kernel, num_frequencies: int) -> Array:
    """Frequencies for the Fourier features of a kernel, which a family registers.

    :param num_frequencies: How many.
    :return: ``[num_frequencies, D]``.
    :raises ValueError: If the kernel's class is not registered, or there are not that many
        candidates.
    """
    raise ValueError(
        "kernel must be a HarmonizableMixture or a HarmonizableComponent, found "
        f"{type(kernel).__name__}, which has no Fourier transform in closed form; pass "
        "HarmonizableMixture.from_data(X, Y, num_components, num_frequencies)."
    )


@select_frequencies.register(HarmonizableComponent)
def select_frequencies_harmonizable(kernel: HarmonizableComponent, num_frequencies: int) -> Array:
    """Picked one by one where most of the transform's variance is left."""
    candidates = _candidates(kernel)
    count = len(candidates)
    num_frequencies = integer("num_frequencies", num_frequencies, at_least=1, at_most=count)
    same, opposite = _densities(kernel, candidates)
    residual = np.block(
        [
            [(same + opposite).real, (opposite - same).imag],
            [(same + opposite).imag, (same - opposite).real],
        ]
    )
    residual /= np.max(np.diag(residual))
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


def _densities(kernel: HarmonizableComponent, w: Array) -> tuple[ComplexArray, ComplexArray]:
    """At (w, w') and at (w, -w'), for all pairs."""
    w = tf.constant(w, gpflow.default_float())
    found = densities(kernel.tensors(), w, w)
    same, opposite = (part.numpy().astype(complex) for part in found[:2])
    if found.same_imaginary is not None and found.opposite_imaginary is not None:
        same.imag = found.same_imaginary.numpy()
        opposite.imag = found.opposite_imaginary.numpy()
    return same, opposite


def _candidates(kernel: HarmonizableComponent) -> Array:
    """A box about each frequency of the kernel, as wide as its density, in the half space that
    holds one of w and -w; and zero."""
    component = kernel.tensors()
    deviations = np.sqrt(np.diag(component.excess + component.envelope / 4))
    centres = component.frequencies.numpy()
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
