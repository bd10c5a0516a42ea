"""Sufficient statistics of regression, for data in files and for rows on several machines.

:class:`interdomain.models.StructuredSGPR` computes these sums, and can be built from them.
"""

from .sums.statistics import SufficientStatistics

__all__ = ["SufficientStatistics"]
