"""Structured posteriors. Stock models use them automatically, through GPflow's dispatchers."""

from .blockwise import AdditivePosterior, OrthogonalPosterior
from .structured import CollapsedPosterior, StructuredPosterior

__all__ = ["AdditivePosterior", "CollapsedPosterior", "OrthogonalPosterior", "StructuredPosterior"]
