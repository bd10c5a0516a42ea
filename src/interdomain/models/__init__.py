"""Models that stock GPflow does not have."""

from .additive import AdditiveSVGP
from .hvgp import HVGP

__all__ = ["AdditiveSVGP", "HVGP"]
