"""Models that GPflow itself does not have."""

from .additive import HVGP, AdditiveSVGP
from .collapsed_svgp import CollapsedSVGP
from .orthogonal import OrthogonalSVGP
from .structured_sgpr import StructuredSGPR

__all__ = ["AdditiveSVGP", "CollapsedSVGP", "HVGP", "OrthogonalSVGP", "StructuredSGPR"]
