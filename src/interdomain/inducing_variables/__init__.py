"""Inducing variables, in the place of those of ``gpflow.inducing_variables``."""

from .activation_features import ActivationFeatures
from .base import InterDomainInducingVariables
from .harmonic import HarmonicInducingPoints
from .responses import InducingPatches, OrbitInducingPoints
from .spherical_harmonics import SphericalHarmonics
from .sums import SumInducingVariables

__all__ = [
    "ActivationFeatures",
    "HarmonicInducingPoints",
    "InducingPatches",
    "InterDomainInducingVariables",
    "OrbitInducingPoints",
    "SphericalHarmonics",
    "SumInducingVariables",
]
