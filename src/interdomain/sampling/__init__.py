"""Draws functions from posteriors and priors: see :func:`sample_functions`.

Each family of kernels registers with :func:`prior_sample` how functions are drawn from its prior,
as a :class:`PriorSample`, which knows what inducing variables are of such functions: stationary
kernels in ``waves``, zonal kernels in ``zonal``, those made of others in ``priors``.
``conditioning`` makes functions of a posterior of them.
"""

from . import waves, zonal
from .functions import FunctionSamples, sample_functions
from .priors import Draws, PriorSample, prior_sample

__all__ = ["Draws", "FunctionSamples", "PriorSample", "prior_sample", "sample_functions"]

del waves, zonal
