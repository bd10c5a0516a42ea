"""Zonal kernels: functions of the angle between inputs that are lifted to a sphere.

They belong to :class:`interdomain.inducing_variables.SphericalHarmonics`, with which ``Kuu`` is
diagonal, and to :class:`interdomain.inducing_variables.ActivationFeatures`. Use
:class:`ArcCosine` for functions that behave like neural networks, and the stationary kernels of
the sphere where smoothness or a lengthscale matters; :class:`FreeSpectrum` has an eigenvalue of its
own for each level. Derive from :class:`ZonalKernel` to define one of your own by its shape
function.
"""

from .arc_cosine import ArcCosine
from .base import ZonalKernel
from .free_spectrum import FreeSpectrum
from .spherical_stationary import (
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
)

__all__ = [
    "ArcCosine",
    "ChordalSquaredExponential",
    "FreeSpectrum",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "ZonalKernel",
]
