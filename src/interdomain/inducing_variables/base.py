"""What all inter-domain inducing variables of this library share."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import gpflow
from gpflow.inducing_variables import InducingVariables


class InterDomainInducingVariables(gpflow.inducing_variables.InducingVariables, abc.ABC):
    """Inducing variables that are not values of f at points.

    Every subclass gets the structured posterior and KL divergence, which work with
    :func:`interdomain.covariances.Kuu_operator`; it has to register ``Kuu`` and ``Kuf`` for the
    kernels it belongs to, and ``Kuu_operator`` if its ``Kuu`` has structure. The posterior serves
    ``gpflow.models.SVGP``; ``gpflow.models.SGPR`` has no such dispatch and factorises the dense
    Kuu: :class:`interdomain.models.StructuredSGPR` keeps the structure there.

    It does not derive from :class:`gpflow.inducing_variables.InducingPoints`, whose covariances
    (kernel values between points) it would inherit without a warning.
    """


class DecomposedInducingVariables(InterDomainInducingVariables, abc.ABC):
    """Independent blocks of inducing variables, one for each summand of a kernel.

    The kernel is a ``gpflow.kernels.Sum`` or a :class:`interdomain.kernels.DecomposedKernel`.
    """

    @property
    @abc.abstractmethod
    def inducing_variables(self) -> Sequence[InducingVariables | None]:
        """One block per summand, in the order of ``kernel.kernels``; None for a summand without."""
