"""Draws functions from posteriors and priors: see :func:`interdomain.sample_functions`.

``priors`` has the table that says how functions are drawn from the prior of a kernel: stationary
kernels in ``waves``, zonal kernels in ``zonal``. Each knows what inducing variables are of its
functions (``base``), so that ``conditioning`` can make functions of a posterior of them.
"""

from .functions import sample_functions as sample_functions

__all__: list[str] = []
