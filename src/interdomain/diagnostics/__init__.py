"""Tools to choose models, inducing variables and transformations, and to inspect fitted models."""

from .candidates import Candidate, candidates
from .effects import Effects, effects
from .harmonics import HarmonicShares, harmonic_shares
from .recommend import Recommendation, recommend
from .spectrum import Spectrum, spectrum
from .variance import (
    TransformRanking,
    VarianceTerms,
    nystrom_trace_error,
    rank_transforms,
    variance_terms,
)

__all__ = [
    "Candidate",
    "Effects",
    "HarmonicShares",
    "Recommendation",
    "Spectrum",
    "TransformRanking",
    "VarianceTerms",
    "candidates",
    "effects",
    "harmonic_shares",
    "nystrom_trace_error",
    "rank_transforms",
    "recommend",
    "spectrum",
    "variance_terms",
]
