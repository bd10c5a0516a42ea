"""Sparse variational inference with a second, orthogonal set of inducing variables."""

from __future__ import annotations

from typing import Any, Literal

from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction

from ..._arguments import choice
from ...core.combined import num_inducing
from ...core.inputs import validate_inducing_variable
from ...posteriors.orthogonal_terms import OrthogonalPair, orthogonal_groups
from ...training.natural_gradients import Pair
from .q import JointQ, q_attribute
from .svgp import SVGP


class OrthogonalQ(JointQ):
    """Independent Gaussians q(u) of the base u and q(v') of the orthogonal inducing variables v'.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = idm.kernels.SphericalMatern32()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    >>> points = gpflow.inducing_variables.InducingPoints(np.eye(2))
    >>> q = idm.models.OrthogonalQ(kernel, harmonics, points)
    >>> [q_mu.shape for q_mu, _ in q.variational_parameters]
    [TensorShape([9, 1]), TensorShape([2, 1])]

    :param kernel: The kernel of the model, as for :class:`JointQ`.
    :param inducing_variable: The base u, which has ``Kuu`` and ``Kuf``.
    :param orthogonal_inducing_variable: The second set v; v' is the part of v that is independent
        of u. :func:`interdomain.covariances.Kvu` must be registered for both sets, as it is if one
        is ``InducingPoints``. Variables v that u determines have no effect.
    :param variant: "solve": q(v') has its own covariance (SOLVE-GP). "odvgp": q(v') has the
        covariance of the prior, so that v' contributes only to the mean (Salimbeni et al. 2018),
        and there is no ``q_sqrt_orthogonal``.
    :param q_mu_orthogonal: Initial values ``[K, L]``; zeros by default.
    :param q_sqrt_orthogonal: Initial values ``[L, K, K]``, or ``[K, L]`` if ``q_diag``; the
        identity by default.
    :param q_diag: Whether the covariances of both q's are diagonal.
    :param options: ``num_latent_gps``, ``whiten``, ``q_shared``, and ``q_mu`` and ``q_sqrt`` of u,
        as for :class:`JointQ`.
    :raises ValueError: As :class:`JointQ`; if ``variant`` is unknown or does not fit the initial
        values; at first use, if there is no covariance between the two sets.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        *,
        variant: Literal["solve", "odvgp"] = "solve",
        q_mu_orthogonal: TensorType | None = None,
        q_sqrt_orthogonal: TensorType | None = None,
        q_diag: bool = False,
        **options: Any,
    ) -> None:
        validate_inducing_variable("orthogonal_inducing_variable", orthogonal_inducing_variable)
        super().__init__(kernel, inducing_variable, q_diag=q_diag, **options)
        self.orthogonal_inducing_variable = orthogonal_inducing_variable
        self.variant = choice("variant", variant, ("solve", "odvgp"))
        if variant == "odvgp" and q_sqrt_orthogonal is not None:
            raise ValueError(
                "q_sqrt_orthogonal: with variant='odvgp' the covariance of q(v') is the prior's; "
                "leave it out, or pass variant='solve'."
            )
        size = int(num_inducing(orthogonal_inducing_variable))
        values = size, q_mu_orthogonal, q_sqrt_orthogonal
        self.q_mu_orthogonal, root = self._new_pair(
            "_orthogonal", "orthogonal_inducing_variable", *values, q_diag=q_diag
        )
        self.q_sqrt_orthogonal = root if variant == "solve" else None

    @property
    def variational_parameters(self) -> list[Pair]:
        """The pairs (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes.

        With "odvgp" the only pair is that of u: the covariance of q(v') is fixed, and its mean is
        for the optimizer of the other parameters. A step moves both q's, each as if the other were
        fixed. With a Gaussian likelihood and all of the data, this converges for every step size up
        to one. For other likelihoods, and for minibatches, use at most half the step size that
        works for an SVGP.
        """
        pairs = [(self.q_mu, self.q_sqrt), (self.q_mu_orthogonal, self.q_sqrt_orthogonal)]
        return pairs[: 1 if self.q_sqrt_orthogonal is None else 2]

    @property
    def _sets(self) -> dict[str, InducingVariables]:
        orthogonal = {"orthogonal_inducing_variable": self.orthogonal_inducing_variable}
        return {**super()._sets, **orthogonal}

    def groups(self, kernel: Kernel) -> Any:
        pair = OrthogonalPair(self.inducing_variable, self.orthogonal_inducing_variable)
        q = (self.q_mu, self.q_sqrt), (self.q_mu_orthogonal, self.q_sqrt_orthogonal)
        return orthogonal_groups(pair, kernel, q, whiten=self.whiten)


class OrthogonalSVGP(SVGP):
    """An SVGP with two sets of inducing variables, orthogonally decoupled (SOLVE-GP and ODVGP).

    The base u explains f as in an SVGP. The residual ``h = f - E[f | u]`` is independent of u a
    priori. Inducing variables v' describe h: ``q(u, v') = q(u) q(v')`` (Shi et al. 2020; Tiao et
    al. 2023, eqs. 8-12). M base and K orthogonal variables cost two factorisations, of sizes M and
    K; an SVGP with all of them has one of size M + K. A base of
    :class:`interdomain.inducing_variables.SphericalHarmonics` needs no factorisation. Orthogonal
    points explain what a base of activation features or harmonics leaves out.

    Use it like a ``gpflow.models.SVGP``. ``q_mu`` and ``q_sqrt`` belong to u,
    ``q_mu_orthogonal`` and ``q_sqrt_orthogonal`` to v'.

    :param kernel: The kernel of the model, as for :class:`OrthogonalQ`.
    :param likelihood: Any likelihood of GPflow.
    :param inducing_variable: The base u.
    :param orthogonal_inducing_variable: The second set v.
    :param mean_function: The mean function, which is added to f.
    :param num_data: The number of rows of the whole data set, if minibatches are used.
    :param charge: "trace" or "log", as for :class:`SVGP`.
    :param q: The other arguments of :class:`OrthogonalQ`, by name.
    :raises ValueError: As :class:`OrthogonalQ` and :class:`SVGP`.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        *,
        mean_function: MeanFunction | None = None,
        num_data: int | TensorType | None = None,
        charge: Literal["trace", "log"] = "trace",
        **q: Any,
    ) -> None:
        both = OrthogonalQ(kernel, inducing_variable, orthogonal_inducing_variable, **q)
        super().__init__(
            kernel, likelihood, both, mean_function=mean_function, num_data=num_data, charge=charge
        )

    orthogonal_inducing_variable = q_attribute("orthogonal_inducing_variable", "The second set v.")
    q_mu_orthogonal = q_attribute("q_mu_orthogonal", "The mean of q(v').")
    q_sqrt_orthogonal = q_attribute(
        "q_sqrt_orthogonal", 'The root of the covariance of q(v\'); None with "odvgp".'
    )
