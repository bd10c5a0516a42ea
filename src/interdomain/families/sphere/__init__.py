"""Zonal kernels of inputs on a sphere, or lifted to one, and their inducing variables: spherical
harmonics and hidden units. The subpackage ``mathematics`` does not depend on GPflow.
"""

from . import pairs  # registers covariances between two sets of features

__all__ = ["pairs"]
