"""Models that GPflow itself does not have."""

from .additive import AdditiveSVGP
from .collapsed_svgp import CollapsedSVGP
from .hvgp import HVGP
from .orthogonal import OrthogonalSVGP
from .structured_sgpr import StructuredSGPR

__all__ = ["AdditiveSVGP", "CollapsedSVGP", "HVGP", "OrthogonalSVGP", "StructuredSGPR"]
