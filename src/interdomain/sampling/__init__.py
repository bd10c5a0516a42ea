"""Draws functions from posteriors and priors: see :func:`sample_functions`.

Each family of kernels registers with :func:`prior_sample` how functions are drawn from its prior:
stationary kernels in ``waves``, zonal kernels in ``zonal``, those made of others in
``combinations``. Each family of inducing variables registers with :data:`project` what u is for
such a function. ``conditioning`` combines both into functions of a posterior.
"""

from . import combinations, waves, zonal
from .functions import FunctionSamples, sample_functions
from .priors import Draws, PriorSample, prior_sample, project

__all__ = [
    "Draws",
    "FunctionSamples",
    "PriorSample",
    "prior_sample",
    "project",
    "sample_functions",
]

del combinations, waves, zonal
