"""Models that GPflow itself does not have, and the q's that they are made of."""

from .dual_svgp.model import DualSVGP
from .structured_sgpr.model import StructuredSGPR
from .svgp.additive import HVGP, AdditiveSVGP, QPerBlock
from .svgp.orthogonal import OrthogonalQ, OrthogonalSVGP
from .svgp.q import JointQ
from .svgp.svgp import SVGP
from .vecchia_sgpr.model import VecchiaSGPR

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
