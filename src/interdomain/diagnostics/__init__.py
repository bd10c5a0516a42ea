"""What one looks at to choose inducing variables and transformations, and afterwards."""

from ..posteriors.orthogonal_terms import VarianceTerms
from .nystrom import TransformRanking, nystrom_trace_error, rank_transforms
from .spectrum import Spectrum, spectrum
from .variance import variance_terms

__all__ = [
    "Spectrum",
    "TransformRanking",
    "VarianceTerms",
    "nystrom_trace_error",
    "rank_transforms",
    "spectrum",
    "variance_terms",
]
