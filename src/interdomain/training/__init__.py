"""Training of GPflow models: L-BFGS, Adam and natural gradients, with checkpoints that resume."""

from ..distributed import WorkerLostError
from .additive import AdditiveFit, fit_additive
from .choice import Choice
from .collapsed import CollapsedFit, fit_collapsed
from .loop import fit
from .optimum import start_at_optimum
from .pairs import RankedPair
from .progress import Callback, StopFit
from .pursuit import Pursuit, PursuitRound, matching_pursuit
from .race import Entrant, Race, RaceEntry, RacePoint, race
from .results import FitResult, NonFiniteError
from .sgpr import SGPRFit, fit_sgpr

__all__ = [
    "AdditiveFit",
    "Callback",
    "Choice",
    "CollapsedFit",
    "Entrant",
    "FitResult",
    "NonFiniteError",
    "Pursuit",
    "PursuitRound",
    "Race",
    "RaceEntry",
    "RacePoint",
    "RankedPair",
    "SGPRFit",
    "StopFit",
    "WorkerLostError",
    "fit",
    "fit_additive",
    "fit_collapsed",
    "fit_sgpr",
    "matching_pursuit",
    "race",
    "start_at_optimum",
]
