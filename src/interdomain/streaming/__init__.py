"""Sums over rows of data that need not fit into memory, for `interdomain.models.StructuredSGPR`."""

from .invalid_rows import InvalidRowsError
from .shards import Shards
from .statistics import SufficientStatistics

__all__ = ["InvalidRowsError", "Shards", "SufficientStatistics"]
