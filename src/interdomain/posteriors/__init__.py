"""Structured posteriors, registered with GPflow: stock models use them by themselves."""

from .structured import StructuredPosterior

__all__ = ["StructuredPosterior"]
