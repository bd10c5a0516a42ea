"""Pictures of spectral kernels, and maps.

They need matplotlib (the extra ``plot``), which is imported only when a function is called; without
it they raise ImportError. Functions return the axes that they have drawn in.
"""

from .maps import globe
from .spectral_kernels import generalized_spectral_density, kernel_matrix, wigner

__all__ = ["generalized_spectral_density", "globe", "kernel_matrix", "wigner"]
