"""Mathematics of the sphere S^{d-1}, independent of GPflow: an activation function, the numbers of
harmonics, Funk-Hecke coefficients, and points of the globe."""

from .families.sphere.mathematics.activations import Softplus
from .families.sphere.mathematics.dimensions import num_harmonics
from .families.sphere.mathematics.funk_hecke import funk_hecke_coefficients
from .families.sphere.mathematics.globe import latitude_longitude, unit_vectors

__all__ = [
    "Softplus",
    "funk_hecke_coefficients",
    "latitude_longitude",
    "num_harmonics",
    "unit_vectors",
]
