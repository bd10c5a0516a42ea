"""Training of GPflow models: L-BFGS, Adam and natural gradients, with checkpoints that resume."""

from .loop import fit
from .progress import Callback
from .results import FitResult, NonFiniteError

__all__ = ["Callback", "FitResult", "NonFiniteError", "fit"]
