"""Models that GPflow itself does not have, and the q's that they are made of."""

from .neighbours.vecchia_sgpr import VecchiaSGPR
from .regression.structured_sgpr import StructuredSGPR
from .sites.dual_svgp import DualSVGP
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
