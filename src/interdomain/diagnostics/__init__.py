"""Reports of what features explain of a kernel, of data and of a posterior variance. Each report
has a method ``plot``."""

from .harmonics import harmonic_shares
from .spectrum import spectrum
from .variance import rank_transforms, variance_terms

__all__ = ["harmonic_shares", "rank_transforms", "spectrum", "variance_terms"]
