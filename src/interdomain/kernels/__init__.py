"""Kernels for inter-domain inducing variables.

All public kernels can be imported from here. The docstrings of the subpackages (``zonal``,
``harmonic``, ``convolutional``, ``spectral``, ``periodic``, ``additive``) say what each family is
for. :class:`DecomposedKernel` is the base class of kernels that are sums of independent parts,
:class:`SetKernel` that of kernels that sum over points (patches, orbits). :class:`FiniteRank` is
the part of a kernel that a set of features explains.
"""

from .additive import Additive, CategoricalColumn, NumericColumn
from .convolutional import ChannelAdditive, Convolutional, MultiChannelConvolutional
from .decomposed import DecomposedKernel
from .finite_rank import FiniteRank
from .harmonic import HarmonicKernel, Invariant
from .periodic import Periodized, spectral_density
from .set_kernel import SetKernel
from .spectral import (
    HarmonizableComponent,
    HarmonizableMixture,
    LocallyStationaryGaussian,
    SpectralComponent,
    SpectralMixture,
)
from .zonal import (
    ArcCosine,
    ChordalSquaredExponential,
    FreeSpectrum,
    GlobeMatern12,
    GlobeMatern32,
    GlobeMatern52,
    GlobeSquaredExponential,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
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
