"""Regression on any number of rows: rows, their sums, the bound, and the model made of these.

They serve :class:`interdomain.models.StructuredSGPR` and
:class:`interdomain.models.DualSVGP`.
"""

from .rows import InvalidRowsError, Rows
from .sums import SufficientStatistics

__all__ = ["InvalidRowsError", "Rows", "SufficientStatistics"]
