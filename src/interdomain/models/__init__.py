"""Models that stock GPflow does not have."""

from .additive import AdditiveSVGP
from .hvgp import HVGP
from .orthogonal import OrthogonalSVGP
from .structured_sgpr import StructuredSGPR

__all__ = ["AdditiveSVGP", "HVGP", "OrthogonalSVGP", "StructuredSGPR"]
