"""Covariances of inducing variables with each other and with f, registered with dispatchers.

``Kuu`` and ``Kuf`` are GPflow's own dispatchers. ``Kuu_operator`` and ``Kvu`` are this library's.
"""

from gpflow.covariances import Kuf, Kuu

from . import (  # noqa: F401 - each registers its covariances
    additive_features,
    finite_rank,
    fourier_features,
    harmonic_points,
    interval_fourier_features,
    kvus,
    products,
    set_kernels,
    spherical_harmonics,
)
from .dispatch import Kuu_operator, Kvu

__all__ = ["Kuf", "Kuu", "Kuu_operator", "Kvu"]
