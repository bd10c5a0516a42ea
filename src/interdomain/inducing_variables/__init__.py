"""Inter-domain inducing variables, to use instead of those of ``gpflow.inducing_variables``."""

from .activation_features import ActivationFeatures
from .additive_features import AdditiveFeatures
from .base import InterDomainInducingVariables
from .fourier_features import FourierFeatures
from .harmonic_points import HarmonicInducingPoints
from .interval_fourier_features import IntervalFourierFeatures
from .multioutput import (
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from .periodic_fourier_features import PeriodicFourierFeatures
from .products import ProductInducingVariables
from .set_points import InducingPatches, OrbitInducingPoints
from .spherical_harmonics import SphericalHarmonics
from .sums import SumInducingVariables

__all__ = [
    "ActivationFeatures",
    "AdditiveFeatures",
    "FourierFeatures",
    "HarmonicInducingPoints",
    "InducingPatches",
    "InterDomainInducingVariables",
    "IntervalFourierFeatures",
    "OrbitInducingPoints",
    "PeriodicFourierFeatures",
    "ProductInducingVariables",
    "SeparateIndependentInducingVariables",
    "SharedIndependentInducingVariables",
    "SphericalHarmonics",
    "SumInducingVariables",
]
