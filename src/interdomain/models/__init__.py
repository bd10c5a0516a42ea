"""The models of interdomain, and the variational distributions q(u) of its SVGPs."""

# Each module `training` registers how `fit` trains its model.
from .dual_svgp import training as _dual_svgp  # noqa: F401
from .dual_svgp.model import DualSVGP
from .structured_sgpr import training as _structured_sgpr  # noqa: F401
from .structured_sgpr.model import StructuredSGPR
from .svgp.additive import HVGP, AdditiveSVGP
from .svgp.orthogonal import OrthogonalQ, OrthogonalSVGP
from .svgp.q import JointQ
from .svgp.q_per_block import QPerBlock
from .svgp.svgp import SVGP
from .vecchia_sgpr import training as _vecchia_sgpr  # noqa: F401
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
