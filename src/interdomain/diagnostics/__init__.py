"""What features explain of a kernel, of data and of a posterior variance."""

from .harmonics import HarmonicShares, harmonic_shares
from .spectrum import Spectrum, spectrum
from .variance import (
    TransformRanking,
    VarianceTerms,
    nystrom_trace_error,
    rank_transforms,
    variance_terms,
)

__all__ = [
    "HarmonicShares",
    "Spectrum",
    "TransformRanking",
    "VarianceTerms",
    "harmonic_shares",
    "nystrom_trace_error",
    "rank_transforms",
    "spectrum",
    "variance_terms",
]
