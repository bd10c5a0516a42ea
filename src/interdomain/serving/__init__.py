"""Predicts for many rows in batches, and saves models for prediction in other processes."""

from .batches import predict_in_batches
from .saving import save

__all__ = ["predict_in_batches", "save"]
