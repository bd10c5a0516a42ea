"""Kernels for inter-domain inducing variables.

All public kernels are imported from here. :class:`ArcCosine` is for functions that behave like
neural networks, the stationary kernels of the sphere are for smoothness and a lengthscale, and
:class:`ZonalKernel` is the base of your own. :class:`HarmonicKernel` splits a kernel that some
transformations leave unchanged; functions of :class:`Invariant` do not change with their inputs.
:class:`HarmonizableMixture` is for patterns whose frequencies differ from place to place,
:class:`SpectralMixture` where they are the same everywhere. :class:`DecomposedKernel` is the base
class of kernels that are sums of independent parts, :class:`SetKernel` that of kernels that sum
over points (patches, orbits). :class:`FiniteRank` is the part of a kernel that a set of features
explains.
"""

from ..core.decomposed import DecomposedKernel
from ..core.finite_rank import FiniteRank
from .additive.additive import Additive
from .additive.columns import CategoricalColumn, NumericColumn
from .convolutional.channel_additive import ChannelAdditive
from .convolutional.images import Convolutional, MultiChannelConvolutional
from .harmonic.decomposition import HarmonicKernel
from .harmonic.invariant import Invariant
from .periodic.periodized import Periodized
from .periodic.spectral_density import spectral_density
from .set_kernel import SetKernel
from .spectral.harmonizable_component import HarmonizableComponent
from .spectral.harmonizable_mixture import HarmonizableMixture, LocallyStationaryGaussian
from .spectral.spectral_mixture import SpectralComponent, SpectralMixture
from .zonal.arc_cosine import ArcCosine
from .zonal.base import ZonalKernel
from .zonal.free_spectrum import FreeSpectrum
from .zonal.spherical_stationary import (
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
    "Additive",
    "ArcCosine",
    "CategoricalColumn",
    "ChannelAdditive",
    "ChordalSquaredExponential",
    "Convolutional",
    "DecomposedKernel",
    "FiniteRank",
    "FreeSpectrum",
    "GlobeMatern12",
    "GlobeMatern32",
    "GlobeMatern52",
    "GlobeSquaredExponential",
    "HarmonicKernel",
    "HarmonizableComponent",
    "HarmonizableMixture",
    "Invariant",
    "LocallyStationaryGaussian",
    "MultiChannelConvolutional",
    "NumericColumn",
    "Periodized",
    "SetKernel",
    "SpectralComponent",
    "SpectralMixture",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "ZonalKernel",
    "spectral_density",
]
