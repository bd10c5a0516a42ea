"""Mathematics of the sphere S^{d-1}, independent of GPflow: harmonics, zonal series, eigenvalues,
and points of the globe."""

from .activations import (
    GELU,
    Activation,
    CustomActivation,
    Erf,
    ReLU,
    SmoothActivation,
    Softplus,
    resolve_activation,
)
from .arc_cosine import arc_cosine, arc_cosine_eigenvalues, arc_cosine_has_degree
from .dimensions import num_harmonics
from .funk_hecke import funk_hecke_coefficients, funk_hecke_rule, power_coefficient
from .globe import latitude_longitude, unit_vectors
from .harmonics import spherical_harmonics
from .laplace_beltrami import (
    LaplaceBeltramiSpectrum,
    MaternSpectrum,
    SquaredExponentialSpectrum,
)
from .zonal_series import zonal_series

__all__ = [
    "Activation",
    "CustomActivation",
    "Erf",
    "GELU",
    "LaplaceBeltramiSpectrum",
    "MaternSpectrum",
    "ReLU",
    "SmoothActivation",
    "Softplus",
    "SquaredExponentialSpectrum",
    "arc_cosine",
    "arc_cosine_eigenvalues",
    "arc_cosine_has_degree",
    "funk_hecke_coefficients",
    "funk_hecke_rule",
    "latitude_longitude",
    "num_harmonics",
    "power_coefficient",
    "resolve_activation",
    "spherical_harmonics",
    "unit_vectors",
    "zonal_series",
]
