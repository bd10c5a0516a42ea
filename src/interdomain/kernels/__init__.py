"""Kernels that inter-domain inducing variables belong to.

All public kernels are here; the subpackages (``zonal``, ``harmonic``, ``convolutional``,
``spectral``, ``periodic``, ``additive``) say what each family is for. :class:`DecomposedKernel` is
what kernels that are sums of independent parts share, :class:`SetKernel` what kernels of sums over
points (patches, orbits) share. :class:`FiniteRank` is the part of any of them that features
explain.
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
