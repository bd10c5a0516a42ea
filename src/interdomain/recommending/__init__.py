"""Which model suits some data: candidates, races of them on one clock, and the winner.

An annex: imported on demand, it uses the library by its public names alone.
"""

from .candidates import Candidate, candidates
from .race import Entrant, Race, RaceEntry, RacePoint, race
from .recommend import Recommendation, recommend

__all__ = [
    "Candidate",
    "Entrant",
    "Race",
    "RaceEntry",
    "RacePoint",
    "Recommendation",
    "candidates",
    "race",
    "recommend",
]
