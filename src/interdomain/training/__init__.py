"""Training of GPflow models: L-BFGS, Adam and natural gradients, with checkpoints that resume."""

from ..choosing import Choice, Pursuit, PursuitRound
from .collapsed import CollapsedFit, fit_collapsed
from .loop import fit
from .results import Callback, FitResult, NonFiniteError, StopFit
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
