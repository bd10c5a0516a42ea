"""Pictures of kernels, spectra and the terms of a posterior.

They need matplotlib, the extra ``plot``, which is imported by the first call and not before.
"""

from .spectral_kernels import generalized_spectral_density, kernel_matrix, wigner
from .terms import harmonic_shares, spectrum, variance_terms

__all__ = [
    "generalized_spectral_density",
    "harmonic_shares",
    "kernel_matrix",
    "spectrum",
    "variance_terms",
    "wigner",
]
