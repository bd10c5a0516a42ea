"""Inter-domain inducing variables, for use in place of ``gpflow.inducing_variables``."""

from .core.combined import (
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from .core.family import InterDomainInducingVariables
from .core.products import ProductInducingVariables
from .core.sums import SumInducingVariables
from .families.harmonic.invariant import OrbitInducingPoints
from .families.harmonic.points import HarmonicInducingPoints
from .families.harmonizable.fourier_features import HarmonizableFourierFeatures
from .families.images.patches import InducingPatches
from .families.places.fixed_places import FixedPlaces
from .families.sphere.activation_features import ActivationFeatures
from .families.sphere.harmonics import SphericalHarmonics
from .families.splines.spline_features import SplineFeatures
from .families.waves.box_features import BoxFourierFeatures
from .families.waves.interval_features import VariationalFourierFeatures

__all__ = [
    "ActivationFeatures",
    "BoxFourierFeatures",
    "FixedPlaces",
    "HarmonicInducingPoints",
    "HarmonizableFourierFeatures",
    "InducingPatches",
    "InterDomainInducingVariables",
    "OrbitInducingPoints",
    "ProductInducingVariables",
    "SeparateIndependentInducingVariables",
    "SharedIndependentInducingVariables",
    "SphericalHarmonics",
    "SplineFeatures",
    "SumInducingVariables",
    "VariationalFourierFeatures",
]
