"""Structured posteriors. Stock models use them automatically, through GPflow's dispatchers."""

from .additive import AdditivePosterior
from .collapsed import CollapsedPosterior
from .orthogonal import OrthogonalPosterior
from .structured import StructuredPosterior

__all__ = ["AdditivePosterior", "CollapsedPosterior", "OrthogonalPosterior", "StructuredPosterior"]
