"""Features chosen by the data: dictionaries, pursuits in them, and scales trained in turn."""

from .choice import Choice, choose_features
from .pursuit import Pursuit, PursuitRound

__all__ = ["Choice", "Pursuit", "PursuitRound", "choose_features"]
