"""Functions on the sphere, or of inputs lifted to it: zonal kernels, their harmonics and units.

What is computed without GPflow is in ``mathematics``.
"""

from . import pairs  # registers covariances between two sets of features

__all__ = ["pairs"]
