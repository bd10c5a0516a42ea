"""Plots of results of :mod:`interdomain.diagnostics`, and of races."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from gpflow.base import TensorType

from ..diagnostics import HarmonicShares, Spectrum, VarianceTerms
from .axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spectrum(spectrum: Spectrum, ax: Axes | None = None) -> Axes:
    """Draw a kernel's spectrum beside that of an activation (Tiao et al. 2023, Figure 2).

    The plot shows the square roots of the kernel's eigenvalues and the absolute coefficients of the
    activation for each level, on a logarithmic scale. Levels that the kernel has and the activation
    lacks are marked.

    :param spectrum: From :func:`interdomain.diagnostics.spectrum`; with a ``max_degree`` of 35 it
        has the levels of the paper's figure.
    :param ax: Where to draw; a new figure by default.
    """
    ax = new_axes() if ax is None else ax
    roots, coefficients = spectrum.kernel_roots, spectrum.activation_coefficients
    for values, marker, label in (
        (roots, "o", rf"$\sqrt{{\lambda_\ell}}$ of {spectrum.kernel}"),
        (coefficients, "s", rf"$|a_\ell|$ of {spectrum.activation}"),
    ):
        carried = values > 0
        ax.plot(spectrum.degrees[carried], values[carried], marker, ms=4, label=label)
    if spectrum.missing:
        missing = list(spectrum.missing)
        label = f"missing: {spectrum.missing_share:.2g} of the variance"
        ax.plot(missing, roots[missing], "o", ms=9, mfc="none", mec="C3", label=label)
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel=r"level $\ell$", ylabel="coefficient", yscale="log")
    ax.legend(fontsize="small")
    return ax


def harmonic_shares(report: HarmonicShares, ax: Axes | None = None) -> Axes:
    """Draw in which columns and degrees a set of harmonics has its variance.

    There is a bar for each column. It shows the share of the harmonics that have a degree in this
    column, with one colour for each degree.

    :param report: From :func:`interdomain.diagnostics.harmonic_shares`.
    :param ax: Where to draw; a new figure by default.
    """
    ax = new_axes() if ax is None else ax
    place = np.arange(len(report.coordinates))
    start = np.zeros(len(place))
    from matplotlib import colormaps

    # From dark to light, without what is too light on white.
    colours = colormaps["viridis"](np.linspace(0.0, 0.9, max(report.degrees) + 1))
    for degree, shares in zip(report.degrees, report.shares.T, strict=True):
        if degree > 0:  # the constant has none in any column
            label = str(degree) if np.any(shares > 0) else None
            ax.barh(place, shares, left=start, color=colours[degree], label=label)
            start = start + shares
    ax.set_yticks(place, report.coordinates)
    ax.set(xlabel=f"share of {report.of}", ylabel="column with a degree")
    if len(ax.patches):
        ax.legend(title="degree", fontsize="small", ncols=1 + len(report.degrees) // 12)
    return ax


def variance_terms(
    x: TensorType, terms: VarianceTerms, ax: Axes | None = None, *, latent: int = 0
) -> Axes:
    """Draw the terms of a posterior variance along a line (Tiao et al. 2023, Figure 5).

    Terms that are added are solid, and terms that are subtracted are dashed. Terms of the base are
    blue, and terms of the orthogonal variables orange. Their sum, the variance, is black.

    :param x: The positions of the points on the line, ``[N]`` or ``[N, 1]``, in any order.
    :param terms: From :func:`interdomain.diagnostics.variance_terms`.
    :param ax: Where to draw; a new figure by default.
    :param latent: Which of the latent GPs.
    :raises ValueError: If there is not one x for each point.
    """
    position = np.asarray(x, dtype=float)
    num_points, num_latent = terms.explained.shape
    if position.shape not in ((num_points,), (num_points, 1)):
        raise ValueError(
            f"x must be [N] or [N, 1] with N = {num_points}, the number of points of the terms, "
            f"found shape {position.shape}; pass one coordinate for each point."
        )
    ax = new_axes() if ax is None else ax
    order = np.argsort(position.ravel())
    along = position.ravel()[order]
    prior, explained, uncertain, orthogonal_explained, orthogonal_uncertain = (
        np.broadcast_to(term, (num_points, num_latent))[order, latent] for term in terms
    )
    ax.plot(along, prior - explained, color="darkblue", label=r"$+\,(K_{ff} - Q_{ff})$")
    ax.plot(along, uncertain, color="cornflowerblue", label="+ uncertainty of u")
    if np.any(orthogonal_explained):
        label = r"$-\,S_{fv} S_{vv}^{-1} S_{vf}$"
        ax.plot(along, orthogonal_explained, "--", color="darkorange", label=label)
        ax.plot(along, orthogonal_uncertain, color="orange", label="+ uncertainty of v'")
    ax.plot(along, terms.variance.numpy()[order, latent], color="black", label="variance of f")
    ax.set_ylabel("variance")
    ax.legend(fontsize="small")
    return ax
