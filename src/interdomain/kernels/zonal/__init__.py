"""Zonal kernels: functions of the angle between inputs that are on a sphere or lifted to one.

They belong to :class:`interdomain.inducing_variables.SphericalHarmonics`, with which ``Kuu`` is
diagonal, and to :class:`interdomain.inducing_variables.ActivationFeatures`. Use
:class:`ArcCosine` for functions that behave like neural networks, and the stationary kernels of
the sphere where smoothness or a lengthscale matters; :class:`FreeSpectrum` has an eigenvalue of its
own for each level. All take points of a sphere as they are, too (``inputs="unit_vectors"``, or
``inputs="degrees"``); :class:`GlobeMatern52` and others are those of the globe. Derive from
:class:`ZonalKernel` to define one of your own by its shape function.
"""

from .arc_cosine import ArcCosine
from .base import ZonalKernel
from .free_spectrum import FreeSpectrum
from .spherical_stationary import (
    ChordalSquaredExponential,
    GlobeMatern12,
    GlobeMatern32,
    GlobeMatern52,
    GlobeSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
)

__all__ = [
    "ArcCosine",
    "ChordalSquaredExponential",
    "FreeSpectrum",
    "GlobeMatern12",
    "GlobeMatern32",
    "GlobeMatern52",
    "GlobeSquaredExponential",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "ZonalKernel",
]
