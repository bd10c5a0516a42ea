"""Models that GPflow itself does not have."""

from .regression.structured_sgpr import StructuredSGPR
from .sites.dual_svgp import DualSVGP
from .svgp.additive import HVGP, AdditiveSVGP
from .svgp.orthogonal import OrthogonalSVGP

__all__ = ["AdditiveSVGP", "DualSVGP", "HVGP", "OrthogonalSVGP", "StructuredSGPR"]
