"""The result of :func:`interdomain.fit`, its error, and the exception that ends a fit."""

from .results import FitResult, NonFiniteError, StopFit

__all__ = ["FitResult", "NonFiniteError", "StopFit"]
