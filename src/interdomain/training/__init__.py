"""What :func:`interdomain.fit` returns and raises, and how a callback ends it."""

from .fitting import fit as fit
from .results import FitResult, NonFiniteError, StopFit

__all__ = ["FitResult", "NonFiniteError", "StopFit"]
