"""Sums over rows of data that need not fit into memory, and the features they are sums of."""

from .accumulation import InvalidRowsError
from .statistics import SufficientStatistics

__all__ = ["InvalidRowsError", "SufficientStatistics"]
