"""Kernels that inter-domain inducing variables belong to."""

from .arc_cosine import ArcCosine
from .decomposed import DecomposedKernel
from .harmonic import HarmonicKernel
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
    "DecomposedKernel",
    "HarmonicKernel",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "ZonalKernel",
]
