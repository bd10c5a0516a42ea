"""Pictures of spectral kernels of one input: Shen et al. 2019, Figures 1 and 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array
from ..core.decomposed import flat_blocks
from ..families.harmonizable.component import HarmonizableComponent
from ..families.harmonizable.mixture import HarmonizableMixture
from ..families.harmonizable.spectral_mixture import SpectralMixture
from .axes import column, draw_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Harmonizable = HarmonizableComponent | HarmonizableMixture


def kernel_matrix(kernel: Kernel, x: TensorType, ax: Axes | None = None) -> Axes:
    """Draw k(x, x') for inputs on a line (Shen et al. 2019, Figure 1, first row).

    :param kernel: Any kernel of one input.
    :param x: Inputs ``[N]`` or ``[N, 1]``, increasing and equally spaced.
    :param ax: Where to draw; a new figure by default.
    :raises ValueError: If x is not one column.
    """
    places = column("x", x)
    values = np.asarray(kernel(places[:, None]))
    ax = draw_image(ax, places, places, values, "covariance", ("x'", "x"))
    ax.invert_yaxis()
    return ax


def generalized_spectral_density(
    kernel: Harmonizable, w: TensorType, ax: Axes | None = None
) -> Axes:
    """Draw the real part of the generalized spectral density S(w, v) (Shen et al. 2019, Figure 1,
    last rows).

    For a stationary process it is zero outside the diagonal. Values off the diagonal show which
    frequencies are correlated, and how.

    :param kernel: A kernel of one input.
    :param w: Frequencies ``[N]`` or ``[N, 1]``, increasing and equally spaced.
    :param ax: Where to draw; a new figure by default.
    :raises ValueError: If w is not one column.
    """
    w = column("w", w)
    density = kernel.generalized_spectral_density(w[:, None], w[:, None]).numpy()
    return draw_image(ax, w, w, density.real, "density", ("frequency v", "frequency w"))


def wigner(
    kernel: Harmonizable | SpectralMixture,
    x: TensorType,
    w: TensorType,
    ax: Axes | None = None,
    *,
    inducing_variable: InducingVariables | None = None,
) -> Axes:
    """Draw the Wigner distribution: which frequencies occur at which inputs (Shen et al. 2019,
    Figures 1 and 4).

    :param kernel: A kernel of one input.
    :param x: Inputs ``[N]`` or ``[N, 1]``, increasing and equally spaced.
    :param w: Frequencies ``[K]`` or ``[K, 1]``, increasing and equally spaced.
    :param ax: Where to draw; a new figure by default.
    :param inducing_variable: Fourier features of the kernel. Their frequencies are drawn as crosses
        at the centres of their components.
    :raises ValueError: If x or w is not one column, or there is not one set of Fourier features for
        each component.
    """
    places, frequencies = column("x", x), column("w", w)
    marks = [] if inducing_variable is None else _marks(kernel, inducing_variable)
    values = kernel.wigner(places[:, None], frequencies[:, None]).numpy()
    ax = draw_image(ax, places, frequencies, values.T, "density", ("x", "frequency"))
    for mark in marks:
        ax.plot(*mark, "kx", ms=5, mew=1)
    ax.set(xlim=places[[0, -1]], ylim=frequencies[[0, -1]])
    return ax


def _marks(kernel: Kernel, inducing_variable: InducingVariables) -> list[tuple[Array, Array]]:
    """The places and frequencies ``[m]`` of the features of each component.

    :raises ValueError: If they are not Fourier features, one set for each component.
    """
    marks = []
    for block, part in flat_blocks(inducing_variable, kernel):
        if not (hasattr(block, "frequencies") and hasattr(part, "centre")):
            raise ValueError(
                "inducing_variable must be HarmonizableFourierFeatures for each component of the "
                "kernel, found "
                f"{type(block).__name__} for {type(part).__name__}; pass "
                "HarmonizableFourierFeatures.for_kernel(kernel, num_frequencies), or None."
            )
        frequencies = np.abs(block.frequencies.numpy()[:, 0])
        marks.append((np.full_like(frequencies, part.centre.numpy()[0]), frequencies))
    return marks
