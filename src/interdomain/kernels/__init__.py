"""Kernels that inter-domain inducing variables belong to."""

from .arc_cosine import ArcCosine
from .channel_additive import ChannelAdditive
from .convolutional import Convolutional, MultiChannelConvolutional
from .decomposed import DecomposedKernel
from .harmonic import HarmonicKernel
from .invariant import Invariant
from .responses import ResponseSum
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
    "ChannelAdditive",
    "ChordalSquaredExponential",
    "Convolutional",
    "DecomposedKernel",
    "HarmonicKernel",
    "Invariant",
    "MultiChannelConvolutional",
    "ResponseSum",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "ZonalKernel",
]
