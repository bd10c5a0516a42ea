"""Kernels that inter-domain inducing variables belong to."""

from .arc_cosine import ArcCosine
from .channel_additive import ChannelAdditive
from .convolutional import Convolutional, MultiChannelConvolutional
from .decomposed import DecomposedKernel
from .harmonic import HarmonicKernel
from .harmonizable import HarmonizableMixture
from .harmonizable_component import HarmonizableComponent
from .invariant import Invariant
from .locally_stationary import LocallyStationaryGaussian
from .recovery_targets import GeneralizedSpectralMixture, TimeInvertedFractionalBrownianMotion
from .responses import ResponseSum
from .spectral_mixture import SpectralComponent, SpectralMixture
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
    "GeneralizedSpectralMixture",
    "HarmonicKernel",
    "HarmonizableComponent",
    "HarmonizableMixture",
    "Invariant",
    "LocallyStationaryGaussian",
    "MultiChannelConvolutional",
    "ResponseSum",
    "SpectralComponent",
    "SpectralMixture",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "TimeInvertedFractionalBrownianMotion",
    "ZonalKernel",
]
