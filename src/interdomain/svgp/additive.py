"""Sparse variational inference for sums of GPs, with an independent q(u) for each; the HVGP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpflow.base import TensorType
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from ..core.latents import latent_gps, map_latents
from ..families.harmonic.decomposition import HarmonicKernel
from ..families.harmonic.points import HarmonicInducingPoints
from ..families.harmonic.transforms.base import CyclicTransform
from .initial_q import WithBlocksOfQ
from .one_pass import OnePassSVGP


class AdditiveSVGP(WithBlocksOfQ, OnePassSVGP):
    """SVGP for ``f = sum_t f_t`` with a mean-field ``q(u) = prod_t q_t(u_t)``.

    The f_t are the summands of the kernel, independent a priori, and each has its own block of
    inducing variables (Sun et al. 2021, section 4.2). With T blocks of m variables a step costs T
    factorisations of size m instead of one of size T m. A stock ``SVGP`` takes the same kernel and
    inducing variable, and has a joint q(u).

    Use it like a ``gpflow.models.SVGP``, except that ``q_mu`` and ``q_sqrt`` are lists, with one
    parameter for each block. Several latent GPs share the factorisations. Blocks of equal size are
    computed in batches, so that the graph does not grow with their number; or, with ``devices``,
    each block on its device.

    :param kernel: A sum: ``gpflow.kernels.Sum``, :class:`interdomain.kernels.HarmonicKernel`, or a
        sum of sums. (Another kernel is a sum of one.) For several outputs
        ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent`` or ``LinearCoregionalization``
        of such kernels, all with the same number of summands.
    :param likelihood: Any of GPflow's.
    :param inducing_variable: :class:`interdomain.inducing_variables.SumInducingVariables`, or
        :class:`interdomain.inducing_variables.HarmonicInducingPoints`; for several outputs one for
        all latent GPs, or
        :class:`interdomain.inducing_variables.SeparateIndependentInducingVariables`.
    :param mean_function: Added to f.
    :param num_latent_gps: The number P of latent GPs with the same prior, 1 by default. Leave it
        out for a kernel of several outputs, which determines the number.
    :param q_diag: Whether the covariances of the q_t are diagonal.
    :param q_mu: For each block initial values ``[m_t, P]``, for the largest m_t of all latent GPs;
        zeros by default.
    :param q_sqrt: For each block initial values ``[P, m_t, m_t]``, or ``[m_t, P]`` if ``q_diag``;
        the identity by default.
    :param whiten: Whether q_t is over the whitened variables.
    :param num_data: The number of rows of the whole data set, if minibatches are used.
    :param allow_large: Whether to allow a q_sqrt of more than 4 GiB.
    :param devices: Names of devices. The blocks are assigned to them in turn, with their parameters
        and all their operations, forward and backward; "auto" for all logical GPUs (if there are
        two or more). Parameters of the inducing variable that belong to a single block are created
        again on its device and replaced in the model: read them from the model afterwards.
    :raises ValueError: If blocks and summands do not agree, ``num_latent_gps`` is not the number of
        latent GPs of a kernel of several outputs, the latent GPs of such a kernel are not known,
        q_mu or q_sqrt do not fit or are too large, or a device does not exist.
    """

    @property
    def devices(self) -> tuple[str, ...] | None:
        """The devices as TensorFlow names them; None if the blocks are not placed."""
        return self._devices


class HVGP(AdditiveSVGP):
    """The harmonic variational GP (Sun et al. 2021, section 4.2).

    It is an :class:`AdditiveSVGP` with a :class:`interdomain.kernels.HarmonicKernel`.

    :param base_kernel: A kernel that is invariant to the transformations; for several outputs
        ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent`` or ``LinearCoregionalization``
        of such kernels, which share the inducing points.
    :param likelihood: Any of GPflow's.
    :param Z: Inducing points ``[T, m, D]`` for each of the T parts, or ``[m, D]`` to share them.
    :param transforms: One of :mod:`interdomain.transforms`, or a list of those that commute.
    :param complete: Whether parts that pair two complex kernels have variables at the images of
        their points too (see :class:`interdomain.inducing_variables.HarmonicInducingPoints`).
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
        kernel = map_latents(base_kernel, lambda latent: HarmonicKernel(latent, transforms))
        first, *_ = latent_gps(kernel)
        super().__init__(
            kernel,
            likelihood,
            HarmonicInducingPoints.for_kernel(first.kernel, Z, complete=complete),
            **options,
        )
