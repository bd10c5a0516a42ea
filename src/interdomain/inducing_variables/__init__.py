"""Inducing variables, in the place of those of ``gpflow.inducing_variables``."""

from .base import InterDomainInducingVariables
from .spherical_harmonics import SphericalHarmonics
from .sums import SumInducingVariables

__all__ = ["InterDomainInducingVariables", "SphericalHarmonics", "SumInducingVariables"]
