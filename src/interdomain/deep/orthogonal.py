"""A layer with a second, orthogonal set of inducing variables."""

from __future__ import annotations

from typing import Any, Literal

from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..models.initial_q import WithOrthogonalQ
from ..models.one_pass import validate_inducing_variable
from .layer import Layer


class OrthogonalLayer(WithOrthogonalQ, Layer):
    """A layer with a base u and orthogonal variables v'.

    It is to :class:`StructuredLayer` what :class:`interdomain.models.OrthogonalSVGP` is to an SVGP:
    ``q(u, v') = q(u) q(v')`` (Shi et al. 2020; Tiao et al. 2023, eqs. 8-12). The orthogonal
    variables, such as inducing points, recover what harmonics or activation features leave out of
    the kernel.

    :param inducing_variable: The base u.
    :param orthogonal_inducing_variable: v; with the base it needs a
        :func:`interdomain.covariances.Kvu`.
    :param variant: "solve": q(v') has a covariance of its own; "odvgp": the prior's.
    :param q_mu_orthogonal: Initial values ``[K, L]``; zeros by default.
    :param q_sqrt_orthogonal: Initial values ``[L, K, K]``, or ``[K, L]`` if ``q_diag``; the
        identity by default.

    All other arguments are those of :class:`StructuredLayer`.

    :raises ValueError: As StructuredLayer; and if there is no covariance between the two sets, or
        the variant is unknown.
    :warns UserWarning: If u determines some or all of the orthogonal variables.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        num_data: int,
        mean_function: MeanFunction | None = None,
        *,
        variant: Literal["solve", "odvgp"] = "solve",
        q_diag: bool = False,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
        q_mu_orthogonal: TensorType | None = None,
        q_sqrt_orthogonal: TensorType | None = None,
        allow_large: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(kernel, inducing_variable, num_data, mean_function, **options)
        validate_inducing_variable("orthogonal_inducing_variable", orthogonal_inducing_variable)
        self.orthogonal_inducing_variable = orthogonal_inducing_variable
        self._check_parts()
        self._make_q(
            variant,
            q_diag=q_diag,
            q_mu=q_mu,
            q_sqrt=q_sqrt,
            q_mu_orthogonal=q_mu_orthogonal,
            q_sqrt_orthogonal=q_sqrt_orthogonal,
            allow_large=allow_large,
        )

    @property
    def input_dim(self) -> int | None:
        """The number of columns of the inputs, as either set of inducing variables has it."""
        known: int | None = super().input_dim
        if known is None and hasattr(self, "orthogonal_inducing_variable"):
            return self._input_dim_of(self.orthogonal_inducing_variable)
        return known
