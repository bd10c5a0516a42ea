"""Kernels that repeat beyond a box: stationary kernels summed over their periodic images.

Their eigenfunctions are sines and cosines, whatever their parameters: what
:class:`interdomain.inducing_variables.PeriodicFourierFeatures` are made of.
"""

from .periodized import Periodized
from .spectral_density import column_lengthscales, spectral_density

__all__ = ["Periodized", "column_lengthscales", "spectral_density"]
