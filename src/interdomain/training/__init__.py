"""The result of :func:`interdomain.fit`, its error, and the exception by which callbacks end it."""

from .results import FitResult, NonFiniteError, StopFit

__all__ = ["FitResult", "NonFiniteError", "StopFit"]
