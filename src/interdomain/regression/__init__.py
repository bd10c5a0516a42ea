"""Regression on any number of rows: rows, their sums, the bound, and the model made of these.

They serve :class:`interdomain.models.StructuredSGPR` and
:class:`interdomain.models.CollapsedSVGP`.
"""

from .rows import InvalidRowsError, Rows
from .sums import SufficientStatistics

__all__ = ["InvalidRowsError", "Rows", "SufficientStatistics"]
