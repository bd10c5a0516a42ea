"""Kernels that are given by their spectrum: sums of a few frequencies each.

Use :class:`HarmonizableMixture` where patterns and their frequencies differ from place to place,
with :class:`interdomain.inducing_variables.FourierFeatures`; :class:`SpectralMixture` where they
are the same everywhere. Both start from data with ``from_data``.
"""

from .harmonizable_component import HarmonizableComponent
from .harmonizable_mixture import HarmonizableMixture, LocallyStationaryGaussian
from .spectral_mixture import SpectralComponent, SpectralMixture

__all__ = [
    "HarmonizableComponent",
    "HarmonizableMixture",
    "LocallyStationaryGaussian",
    "SpectralComponent",
    "SpectralMixture",
]
