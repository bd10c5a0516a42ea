"""A layer of sums with an independent q for each summand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..models.initial_q import WithBlocksOfQ
from .layer import Layer


class AdditiveLayer(WithBlocksOfQ, Layer):
    """A layer with ``f = sum_t f_t`` and a mean-field ``q(u) = prod_t q_t(u_t)``.

    It is to :class:`StructuredLayer` what :class:`interdomain.models.AdditiveSVGP` is to an SVGP:
    with T blocks of m variables a step costs T factorisations of size m. With a
    :class:`~interdomain.kernels.HarmonicKernel` it is a layer of harmonic variational blocks (Sun
    et al. 2021, section 4.2), and inside a :class:`ConvolutionalLayer` a layer of their deep
    convolutional GPs (section 5).

    :param kernel: A sum, as AdditiveSVGP takes it; for several outputs also one of GPflow's
        multi-output kernels.
    :param inducing_variable: The blocks.
    :param q_mu: Initial values ``[m_t, L]`` for each block; zeros by default.
    :param q_sqrt: Initial values ``[L, m_t, m_t]``, or ``[m_t, L]`` if ``q_diag``, for each block;
        the identity by default.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: As StructuredLayer; and if the blocks do not match the summands.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        q_diag: bool = False,
        q_mu: Sequence[TensorType] | None = None,
        q_sqrt: Sequence[TensorType] | None = None,
        allow_large: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(kernel, inducing_variable, num_data, mean_function, **options)
        self._make_q(q_diag=q_diag, q_mu=q_mu, q_sqrt=q_sqrt, allow_large=allow_large)
