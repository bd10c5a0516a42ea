"""The sums over rows that regression needs, for files and for rows on several machines.

:class:`interdomain.models.StructuredSGPR` makes them, and is computed from them.
"""

from .sums.statistics import SufficientStatistics

__all__ = ["SufficientStatistics"]
