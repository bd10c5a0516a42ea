"""Kernels that inter-domain inducing variables belong to."""

from .arc_cosine import ArcCosine
from .spherical_stationary import (
    ChordalSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
)
from .zonal import ZonalKernel

__all__ = [
    "ArcCosine",
    "ChordalSquaredExponential",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "ZonalKernel",
]
