"""The choice of features by the data: matching pursuit in dictionaries, and input scales."""

from .choice import Choice, choose_features
from .pursuit import Pursuit, PursuitRound

__all__ = ["Choice", "Pursuit", "PursuitRound", "choose_features"]
