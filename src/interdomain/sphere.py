"""Mathematics of the sphere S^{d-1}, independent of GPflow: harmonics, zonal series, eigenvalues,
and points of the globe."""

from .families.sphere.mathematics.activations import GELU, CustomActivation, Erf, ReLU, Softplus
from .families.sphere.mathematics.dimensions import num_harmonics
from .families.sphere.mathematics.funk_hecke import funk_hecke_coefficients
from .families.sphere.mathematics.globe import latitude_longitude, unit_vectors
from .families.sphere.mathematics.harmonics import spherical_harmonics
from .families.sphere.mathematics.zonal_series import zonal_series

__all__ = [
    "CustomActivation",
    "Erf",
    "GELU",
    "ReLU",
    "Softplus",
    "funk_hecke_coefficients",
    "latitude_longitude",
    "num_harmonics",
    "spherical_harmonics",
    "unit_vectors",
    "zonal_series",
]
