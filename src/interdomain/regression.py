"""Regression on any number of rows: rows, their sums, the bound, and the model made of these.

They serve :class:`interdomain.models.StructuredSGPR` and
:class:`interdomain.models.DualSVGP`.
"""

from .sums.statistics import SufficientStatistics

__all__ = ["SufficientStatistics"]
