"""Sparse variational GPs for sums of GPs, with an independent q(u) for each summand; the HVGP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction

from ...families.harmonic.decomposition import HarmonicKernel
from ...families.harmonic.points import HarmonicInducingPoints
from ...families.harmonic.transforms.base import CyclicTransform
from .q import q_attribute
from .q_per_block import QPerBlock
from .svgp import SVGP


class AdditiveSVGP(SVGP):
    """An SVGP for ``f = sum_t f_t`` with a mean-field ``q(u) = prod_t q_t(u_t)``.

    The f_t are the summands of the kernel, independent a priori. Each summand has its own block of
    inducing variables (Sun et al. 2021, section 4.2). With T blocks of m variables a step costs T
    factorisations of size m instead of one of size T m. A stock ``SVGP`` accepts the same kernel
    and inducing variable, and has a joint q(u).

    Use it like a ``gpflow.models.SVGP``, except that ``q_mu`` and ``q_sqrt`` are lists, with one
    parameter for each block. Blocks of equal size are computed in batches, so that the graph does
    not grow with their number. With ``devices``, each block is on one device, with its parameters
    and its operations, those of gradients included.

    :param kernel: A sum: ``gpflow.kernels.Sum``, :class:`interdomain.kernels.HarmonicKernel`, or a
        sum of sums; any other kernel has one summand. For several outputs,
        ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent`` or ``LinearCoregionalization``
        of such kernels, all with the same number of summands.
    :param likelihood: Any likelihood of GPflow.
    :param inducing_variable: :class:`interdomain.inducing_variables.SumInducingVariables`, or
        :class:`interdomain.inducing_variables.HarmonicInducingPoints`. For several outputs, one
        object for all latent GPs, or
        :class:`interdomain.inducing_variables.SeparateIndependentInducingVariables`.
    :param mean_function: The mean function, which is added to f.
    :param num_data: The number of rows of the whole data set, if minibatches are used.
    :param charge: "trace" or "log", as for :class:`SVGP`.
    :param q: The other arguments of :class:`QPerBlock`, by name: ``num_latent_gps``, ``whiten``,
        ``q_diag``, ``q_shared``, ``q_mu``, ``q_sqrt`` and ``devices``.
    :raises ValueError: As :class:`QPerBlock` and :class:`SVGP`.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingVariables,
        *,
        mean_function: MeanFunction | None = None,
        num_data: int | TensorType | None = None,
        charge: Literal["trace", "log"] = "trace",
        **q: Any,
    ) -> None:
        qs = QPerBlock(kernel, inducing_variable, **q)
        super().__init__(
            kernel, likelihood, qs, mean_function=mean_function, num_data=num_data, charge=charge
        )

    devices = q_attribute("devices", "The names of the devices; None if the blocks are not placed.")


class HVGP(AdditiveSVGP):
    """The harmonic variational GP for invariant kernels (Sun et al. 2021, section 4.2).

    It is an :class:`AdditiveSVGP` with a :class:`interdomain.kernels.HarmonicKernel`.

    :param base_kernel: A kernel that is invariant under the transformations. (For outputs with
        different kernels, pass a ``SeparateIndependent`` of HarmonicKernels to AdditiveSVGP.)
    :param likelihood: Any likelihood of GPflow.
    :param Z: Inducing points ``[T, m, D]`` for each of the T parts, or ``[m, D]`` to share them.
    :param transforms: A member of :mod:`interdomain.transforms`, or a list that commutes.
    :param complete: Whether a part that adds two complex kernels also has variables at images of
        its points (see :class:`interdomain.inducing_variables.HarmonicInducingPoints`).
    :param options: All other arguments of :class:`AdditiveSVGP`.
    :raises ValueError: If the kernel is not invariant, or Z does not fit the transformations.
    """

    def __init__(
        self,
        base_kernel: Kernel,
        likelihood: Likelihood,
        Z: TensorType | Sequence[TensorType],
        transforms: CyclicTransform | Sequence[CyclicTransform],
        *,
        complete: bool = False,
        **options: Any,
    ) -> None:
        kernel = HarmonicKernel(base_kernel, transforms)
        points = HarmonicInducingPoints.for_kernel(kernel, Z, complete=complete)
        super().__init__(kernel, likelihood, points, **options)
