"""The harmonic variational Gaussian process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from gpflow.base import TensorType
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction

from ..covariances.latents import latent_gps, map_latents
from ..inducing_variables import HarmonicInducingPoints
from ..kernels import HarmonicKernel
from ..transforms import CyclicTransform
from .additive import AdditiveSVGP


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
    :param mean_function: As for :class:`AdditiveSVGP`, like all arguments after this one.
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
        mean_function: MeanFunction | None = None,
        num_latent_gps: int | None = None,
        q_diag: bool = False,
        q_mu: Sequence[TensorType] | None = None,
        q_sqrt: Sequence[TensorType] | None = None,
        whiten: bool = True,
        num_data: int | TensorType | None = None,
        allow_large: bool = False,
        devices: Sequence[str] | Literal["auto"] | None = None,
    ) -> None:
        kernel = map_latents(base_kernel, lambda latent: HarmonicKernel(latent, transforms))
        first, *_ = latent_gps(kernel)
        super().__init__(
            kernel,
            likelihood,
            HarmonicInducingPoints.for_kernel(first.kernel, Z, complete=complete),
            mean_function=mean_function,
            num_latent_gps=num_latent_gps,
            q_diag=q_diag,
            q_mu=q_mu,
            q_sqrt=q_sqrt,
            whiten=whiten,
            num_data=num_data,
            allow_large=allow_large,
            devices=devices,
        )
