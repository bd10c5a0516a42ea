"""Models that stock GPflow does not have."""

from .additive import AdditiveSVGP
from .hvgp import HVGP
from .orthogonal import OrthogonalSVGP

__all__ = ["AdditiveSVGP", "HVGP", "OrthogonalSVGP"]
