"""What :func:`interdomain.fit` returns and raises, and how a callback ends it."""

from .results import FitResult, NonFiniteError, StopFit

__all__ = ["FitResult", "NonFiniteError", "StopFit"]
