"""Random functions of posteriors and priors: see :func:`interdomain.sample_functions`.

``priors`` has the table of how to draw functions from the prior of a kernel: stationary kernels in
``waves``, zonal kernels in ``zonal``. Each class computes the inducing variables of its functions
(``base``), from which ``conditioning`` makes functions of a posterior.
"""

from .functions import sample_functions as sample_functions

__all__: list[str] = []
