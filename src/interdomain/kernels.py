"""Kernels for inter-domain inducing variables: the import path of all public kernels.

:class:`SphericalMatern52` and the other kernels on the sphere have a smoothness and a lengthscale;
:class:`ArcCosine` behaves like a neural network, and :class:`ZonalKernel` is the base class of your
own zonal kernels. :class:`Periodized` makes a stationary kernel periodic. :class:`Invariant` has
functions that transformations of the inputs do not change; :class:`HarmonicKernel` splits a kernel
that is invariant. :class:`HarmonizableMixture` has frequencies that vary with place, and
:class:`SpectralMixture` the same frequencies everywhere. :class:`TwoScales` has two lengthscales.
:class:`SetKernel` is the base class of kernels that sum over points (patches, orbits).
:class:`FiniteRank` is the part of a kernel that a set of features explains. :class:`Functional` is
the kernel of rows that are linear functionals of f.
"""

from .core.finite_rank import FiniteRank
from .core.functional_kernel import Functional
from .core.set_kernel import SetKernel
from .core.two_scales import TwoScales
from .families.harmonic.decomposition import HarmonicKernel
from .families.harmonic.invariant import Invariant
from .families.harmonizable.component import HarmonizableComponent
from .families.harmonizable.mixture import HarmonizableMixture, LocallyStationaryGaussian
from .families.harmonizable.spectral_mixture import SpectralComponent, SpectralMixture
from .families.images.channel_additive import ChannelAdditive
from .families.images.convolutional import Convolutional, MultiChannelConvolutional
from .families.sphere.arc_cosine import ArcCosine
from .families.sphere.free_spectrum import FreeSpectrum
from .families.sphere.kernel import ZonalKernel
from .families.sphere.stationary import (
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
from .families.waves.periodized import Periodized

__all__ = [
    "ArcCosine",
    "ChannelAdditive",
    "ChordalSquaredExponential",
    "Convolutional",
    "FiniteRank",
    "FreeSpectrum",
    "Functional",
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
    "Periodized",
    "SetKernel",
    "SpectralComponent",
    "SpectralMixture",
    "SphericalMatern12",
    "SphericalMatern32",
    "SphericalMatern52",
    "SphericalSquaredExponential",
    "TwoScales",
    "ZonalKernel",
]
