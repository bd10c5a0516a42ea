"""Inter-domain inducing variables, to use instead of those of ``gpflow.inducing_variables``."""

from ..core.family import InterDomainInducingVariables
from ..core.multioutput import (
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from ..core.products import ProductInducingVariables
from ..core.sums import SumInducingVariables
from . import _sphere_pairs  # noqa: F401 - registers covariances of two sets
from .activation_features import ActivationFeatures
from .additive_features import AdditiveFeatures
from .fourier_features import FourierFeatures
from .harmonic_points import HarmonicInducingPoints
from .interval_fourier_features import IntervalFourierFeatures
from .periodic_fourier_features import PeriodicFourierFeatures
from .set_points import InducingPatches, OrbitInducingPoints
from .spherical_harmonics import SphericalHarmonics

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
