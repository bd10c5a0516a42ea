"""Structured posteriors. Stock models use them automatically, through GPflow's dispatchers."""

from .structured import CollapsedPosterior, StructuredPosterior

__all__ = ["CollapsedPosterior", "StructuredPosterior"]
