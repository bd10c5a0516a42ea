"""Sums over rows of data that need not fit into memory.

They serve :class:`interdomain.models.StructuredSGPR` and
:class:`interdomain.models.CollapsedSVGP`.
"""

from .rows import InvalidRowsError, Rows
from .statistics import SufficientStatistics

__all__ = ["InvalidRowsError", "Rows", "SufficientStatistics"]
