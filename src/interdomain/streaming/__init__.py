"""Sums over rows of data that need not fit into memory.

They serve :class:`interdomain.models.StructuredSGPR` and
:class:`interdomain.models.CollapsedSVGP`.
"""

from .invalid_rows import InvalidRowsError
from .shards import Shards
from .statistics import SufficientStatistics

__all__ = ["InvalidRowsError", "Shards", "SufficientStatistics"]
