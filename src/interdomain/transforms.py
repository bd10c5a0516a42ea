"""Cyclic transformations of the input and their products, for the harmonic kernel decomposition.

These are the T-cyclic transformations of Sun et al. 2021, "Scalable Variational Gaussian Processes
via Harmonic Kernel Decomposition". This package does not depend on GPflow.
"""

from .families.harmonic.transforms.base import CyclicTransform
from .families.harmonic.transforms.closed_form import Permutation
from .families.harmonic.transforms.euclidean import (
    Negation,
    Orthogonal,
    PrincipalNegation,
    Rotation,
)
from .families.harmonic.transforms.images import ImageFlip, ImageRotation90, ImageTranslation
from .families.harmonic.transforms.product import Product
from .families.harmonic.transforms.torus import LongitudeShift, Translation

__all__ = [
    "CyclicTransform",
    "ImageFlip",
    "ImageRotation90",
    "ImageTranslation",
    "LongitudeShift",
    "Negation",
    "Orthogonal",
    "Permutation",
    "PrincipalNegation",
    "Product",
    "Rotation",
    "Translation",
]
