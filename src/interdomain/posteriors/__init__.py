"""Posteriors that keep the structure of Kuu. GPflow's dispatchers give them to stock models."""

from .structured import CollapsedPosterior, StructuredPosterior

__all__ = ["CollapsedPosterior", "StructuredPosterior"]
