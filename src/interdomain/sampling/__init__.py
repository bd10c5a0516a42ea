"""Functions drawn from posteriors, and from priors: see :func:`sample_functions`.

A family of kernels registers :func:`prior_sample`, how functions are drawn from its prior: in
``waves`` stationary kernels, in ``columns`` boxes and effects, in ``zonal`` and ``windowed`` zonal
and harmonizable ones, in ``basic`` what has simple features, in ``combinations`` what is made of
others, and in ``finite_rank``. A family of inducing variables registers :data:`project`, what u is
of such a function. ``conditioning`` makes functions of a posterior of both, and ``sources`` says
what each kind of model is made of.
"""

from . import basic, columns, combinations, finite_rank, interval, waves, windowed, zonal
from .draws import Draws
from .functions import FunctionSamples, sample_functions
from .priors import PriorSample, prior_sample, project

__all__ = [
    "Draws",
    "FunctionSamples",
    "PriorSample",
    "prior_sample",
    "project",
    "sample_functions",
]

del basic, columns, combinations, finite_rank, interval, waves, windowed, zonal
