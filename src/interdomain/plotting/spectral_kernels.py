"""Pictures of spectral kernels of one input: Shen et al. 2019, Figures 1 and 4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import Dispatcher

from ..covariances.pairs import flat_blocks
from ..inducing_variables import FourierFeatures
from ..kernels import HarmonizableComponent, HarmonizableMixture, SpectralMixture
from ..sphere._typing import Array
from .axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Harmonizable = HarmonizableComponent | HarmonizableMixture

frequency_marks = Dispatcher("frequency_marks")
frequency_marks.__doc__ = """Where :func:`wigner` marks inducing variables: places and frequencies.

``frequency_marks(inducing_variable, kernel)`` returns two arrays ``[m]``, for one component of a
kernel; families of features with frequencies register theirs.
"""


def kernel_matrix(
    kernel: Kernel, x: TensorType, ax: Axes | None = None, *, colour_bar: bool = True
) -> Axes:
    """Draw k(x, x') for inputs on a line (Shen et al. 2019, Figure 1, first row).

    :param kernel: Any kernel of one input.
    :param x: Inputs ``[N]`` or ``[N, 1]``, increasing and equally spaced.
    :param ax: Where to draw; a new figure by default.
    :param colour_bar: Whether to add a colour bar.
    :return: The axes.
    :raises ImportError: If there is no matplotlib.
    :raises ValueError: If x is not one column.
    """
    places = _column("x", x)
    values = np.asarray(kernel(places[:, None]))
    ax = _image(values, places, places, ax, "covariance", colour_bar)
    ax.set_xlabel("x'")
    ax.set_ylabel("x")
    ax.invert_yaxis()
    return ax


def generalized_spectral_density(
    kernel: Harmonizable,
    w: TensorType,
    ax: Axes | None = None,
    *,
    part: Literal["real", "imaginary", "absolute"] = "real",
    colour_bar: bool = True,
) -> Axes:
    """Draw the generalized spectral density S(w, v) (Shen et al. 2019, Figure 1, last rows).

    For a stationary process it is zero outside the diagonal. Values off the diagonal show which
    frequencies are correlated, and how.

    :param kernel: A kernel of one input.
    :param w: Frequencies ``[N]`` or ``[N, 1]``, increasing and equally spaced.
    :param ax: Where to draw; a new figure by default.
    :param part: Which part of the complex density to draw.
    :param colour_bar: Whether to add a colour bar.
    :return: The axes.
    :raises ImportError: If there is no matplotlib.
    :raises ValueError: If w is not one column, or there is no such part.
    """
    if part not in ("real", "imaginary", "absolute"):
        raise ValueError(f'part must be "real", "imaginary" or "absolute", found {part!r}.')
    frequencies = _column("w", w)
    column = frequencies[:, None]
    density = kernel.generalized_spectral_density(column, column).numpy()
    values = {"real": density.real, "imaginary": density.imag, "absolute": np.abs(density)}[part]
    ax = _image(values, frequencies, frequencies, ax, "density", colour_bar)
    ax.set_xlabel("frequency v")
    ax.set_ylabel("frequency w")
    return ax


def wigner(
    kernel: Harmonizable | SpectralMixture,
    x: TensorType,
    w: TensorType,
    ax: Axes | None = None,
    *,
    inducing_variable: InducingVariables | None = None,
    colour_bar: bool = True,
) -> Axes:
    """Draw the Wigner distribution: which frequencies occur at which inputs (Shen et al. 2019,
    Figures 1 and 4).

    :param kernel: A kernel of one input.
    :param x: Inputs ``[N]`` or ``[N, 1]``, increasing and equally spaced.
    :param w: Frequencies ``[K]`` or ``[K, 1]``, increasing and equally spaced.
    :param ax: Where to draw; a new figure by default.
    :param inducing_variable: Fourier features of the kernel. Their frequencies are drawn as crosses
        at the centres of their components.
    :param colour_bar: Whether to add a colour bar.
    :return: The axes.
    :raises ImportError: If there is no matplotlib.
    :raises ValueError: If x or w is not one column, or there is not one set of Fourier features for
        each component.
    """
    places, frequencies = _column("x", x), _column("w", w)
    marks = [] if inducing_variable is None else _marks(kernel, inducing_variable)
    values = kernel.wigner(places[:, None], frequencies[:, None]).numpy()
    ax = _image(values.T, places, frequencies, ax, "density", colour_bar)
    for mark in marks:
        ax.plot(*mark, "kx", ms=5, mew=1)
    ax.set_xlim(places[0], places[-1])
    ax.set_ylim(frequencies[0], frequencies[-1])
    ax.set_xlabel("x")
    ax.set_ylabel("frequency")
    return ax


def _marks(kernel: Kernel, inducing_variable: InducingVariables) -> list[tuple[Array, Array]]:
    """:raises ValueError: If they are not Fourier features, one set for each component."""
    return [frequency_marks(*pair) for pair in flat_blocks(inducing_variable, kernel)]


@frequency_marks.register(InducingVariables, Kernel)
def frequency_marks_without_frequencies(
    inducing_variable: InducingVariables, kernel: Kernel
) -> NoReturn:
    """:raises ValueError: Always; the features of a component have frequencies."""
    raise ValueError(
        "inducing_variable must be FourierFeatures for each component of the kernel, found "
        f"{type(inducing_variable).__name__} for {type(kernel).__name__}; pass "
        "FourierFeatures.for_kernel(kernel, num_frequencies), or None."
    )


@frequency_marks.register(FourierFeatures, HarmonizableComponent)
def frequency_marks_fourier_features(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent
) -> tuple[Array, Array]:
    """Over the component's centre."""
    marks = np.abs(inducing_variable.frequencies.numpy()[:, 0])
    return np.full_like(marks, kernel.centre.numpy()[0]), marks


def _image(
    values: Array,
    horizontal: Array,
    vertical: Array,
    ax: Axes | None,
    label: str,
    colour_bar: bool,
) -> Axes:
    """Values ``[vertical, horizontal]``, zero in white; the label says what they are."""
    ax = new_axes() if ax is None else ax
    limit = np.max(np.abs(values)) or 1.0
    mesh = ax.pcolormesh(
        horizontal,
        vertical,
        values,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        shading="nearest",
        rasterized=True,
    )
    if colour_bar:
        ax.figure.colorbar(mesh, ax=ax, label=label)
    return ax


def _column(name: str, values: TensorType) -> Array:
    """:raises ValueError: If they are not one column of two values or more."""
    array = np.asarray(values, dtype=float)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(
            f"{name} must be [N] or [N, 1], with two values or more, found shape {array.shape}: "
            "these pictures are of kernels of one input."
        )
    return array
