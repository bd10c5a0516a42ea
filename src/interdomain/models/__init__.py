"""Models that GPflow itself does not have, and the q's that they are made of."""

from .vecchia_sgpr.model import VecchiaSGPR
from .structured_sgpr.model import StructuredSGPR
from .dual_svgp.model import DualSVGP
from .svgp.additive import HVGP, AdditiveSVGP, QPerBlock
from .svgp.orthogonal import OrthogonalQ, OrthogonalSVGP
from .svgp.q import JointQ
from .svgp.svgp import SVGP

__all__ = [
    "AdditiveSVGP",
    "DualSVGP",
    "HVGP",
    "JointQ",
    "OrthogonalQ",
    "OrthogonalSVGP",
    "QPerBlock",
    "SVGP",
    "StructuredSGPR",
    "VecchiaSGPR",
]
