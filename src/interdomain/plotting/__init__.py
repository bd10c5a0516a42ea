"""Plots of kernels, spectra, terms of a posterior variance; and maps.

They need matplotlib (the extra ``plot``), which is imported only when a function is called; without
it they raise ImportError. Functions return the axes, or the figure, that they have drawn in.
"""

from .maps import GlobeAxes, globe, on_disc
from .spectral_kernels import generalized_spectral_density, kernel_matrix, wigner
from .terms import harmonic_shares, spectrum, variance_terms

__all__ = [
    "GlobeAxes",
    "generalized_spectral_density",
    "globe",
    "harmonic_shares",
    "kernel_matrix",
    "on_disc",
    "spectrum",
    "variance_terms",
    "wigner",
]
