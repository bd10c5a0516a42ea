"""Models that GPflow itself does not have."""

from .additive import HVGP, AdditiveSVGP
from .dual_svgp import DualSVGP
from .orthogonal import OrthogonalSVGP
from .structured_sgpr import StructuredSGPR

__all__ = ["AdditiveSVGP", "DualSVGP", "HVGP", "OrthogonalSVGP", "StructuredSGPR"]
