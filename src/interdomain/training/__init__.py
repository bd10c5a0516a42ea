"""Training of GPflow models: L-BFGS, Adam and natural gradients, with checkpoints that resume."""

from ..choosing import Choice, Pursuit, PursuitRound
from .by_recipe import fit
from .collapsed import CollapsedFit, fit_collapsed
from .progress import Callback, StopFit
from .results import FitResult, NonFiniteError
from .sgpr import SGPRFit, fit_sgpr

__all__ = [
    "Callback",
    "Choice",
    "CollapsedFit",
    "FitResult",
    "NonFiniteError",
    "Pursuit",
    "PursuitRound",
    "SGPRFit",
    "StopFit",
    "fit",
    "fit_collapsed",
    "fit_sgpr",
]
