"""Structured posteriors: stock models use them by themselves, as GPflow's dispatchers know them."""

from .additive import AdditivePosterior
from .collapsed import CollapsedPosterior
from .orthogonal import OrthogonalPosterior
from .structured import StructuredPosterior

__all__ = ["AdditivePosterior", "CollapsedPosterior", "OrthogonalPosterior", "StructuredPosterior"]
