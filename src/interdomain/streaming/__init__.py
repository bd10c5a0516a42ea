"""Sums over rows of data that need not fit into memory, and the features they are sums of."""

from .accumulation import InvalidRowsError
from .shards import Shards
from .statistics import SufficientStatistics

__all__ = ["InvalidRowsError", "Shards", "SufficientStatistics"]
