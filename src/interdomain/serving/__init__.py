"""Predictions for many rows, and models saved to predict elsewhere."""

from .batches import predict_in_batches
from .loading import LoadedModel, load
from .saving import save

__all__ = ["LoadedModel", "load", "predict_in_batches", "save"]
