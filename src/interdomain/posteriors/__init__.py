"""Structured posteriors. Stock models use them automatically, through GPflow's dispatchers."""

from .collapsed import CollapsedPosterior
from .several_q import AdditivePosterior, OrthogonalPosterior
from .structured import StructuredPosterior

__all__ = ["AdditivePosterior", "CollapsedPosterior", "OrthogonalPosterior", "StructuredPosterior"]
