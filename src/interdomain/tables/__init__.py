"""Models of tables: sums of effects of columns in one call, and races of models on one clock."""

from .additive import AdditiveFit, fit_additive
from .pairs import RankedPair
from .race import Entrant, Race, RaceEntry, RacePoint, race

__all__ = [
    "AdditiveFit",
    "Entrant",
    "Race",
    "RaceEntry",
    "RacePoint",
    "RankedPair",
    "fit_additive",
    "race",
]
