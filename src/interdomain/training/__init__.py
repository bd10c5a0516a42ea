"""Training of GPflow models: L-BFGS, Adam and natural gradients, with checkpoints that resume."""

from ..choosing import Choice, Pursuit, PursuitRound
from .collapsed import fit_collapsed
from .loop import fit
from .results import Callback, FitResult, NonFiniteError, RowsFit, StopFit
from .sgpr import fit_sgpr

__all__ = [
    "Callback",
    "Choice",
    "FitResult",
    "NonFiniteError",
    "Pursuit",
    "PursuitRound",
    "RowsFit",
    "StopFit",
    "fit",
    "fit_collapsed",
    "fit_sgpr",
]
