"""Models that stock GPflow does not have."""

from .additive import AdditiveSVGP
from .hvgp import HVGP
from .orthogonal import OrthogonalSVGP
from .structured_sgpr import OutOfCoreSGPR

__all__ = ["AdditiveSVGP", "HVGP", "OrthogonalSVGP", "OutOfCoreSGPR"]
