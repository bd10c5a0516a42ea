"""Draws functions from posteriors and priors: see :func:`sample_functions`.

Each family of kernels registers with :func:`prior_sample` how functions are drawn from its prior:
stationary kernels in ``waves``, zonal kernels in ``zonal``, kernels with simple features in
``basic``, kernels made of others in ``combinations``, and kernels of finite rank in
``finite_rank``. Each family of inducing variables registers with :data:`project` what u is for such
a function. ``conditioning`` combines both into functions of a posterior, and ``sources`` takes
models apart for this.
"""

from . import basic, combinations, finite_rank, interval, waves, zonal
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

del basic, combinations, finite_rank, interval, waves, zonal
