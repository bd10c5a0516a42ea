"""Sparse variational inference with a second, orthogonal set of inducing variables."""

from __future__ import annotations

from typing import Literal

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import PrecomputeCacheType

from ..posteriors.groups import marginals_and_kl
from ..posteriors.orthogonal import OrthogonalPosterior
from ..posteriors.orthogonal_terms import (
    OrthogonalGroup,
    OrthogonalPair,
    OrthogonalQ,
    orthogonal_groups,
)
from .initial_q import orthogonal_q, warn_of_determined_variables
from .one_pass import OnePassSVGP, validate_inducing_variable


class OrthogonalSVGP(OnePassSVGP):
    """SVGP with orthogonally decoupled inducing variables: SOLVE-GP and ODVGP, for any two sets.

    u, the base, explains f as in an SVGP. What it leaves, ``h = f - E[f | u]``, is independent of u
    a priori, and a second inducing variable v' describes h: ``q(u, v') = q(u) q(v')`` (Shi et al.
    2020; Tiao et al. 2023, eqs. 8-12). M base and K orthogonal variables cost two factorisations,
    of sizes M and K, where an SVGP with all of them has one of size M + K. A base of
    :class:`interdomain.inducing_variables.SphericalHarmonics` costs none. Points as orthogonal
    variables recover what activation features or harmonics leave out.

    It is used as a ``gpflow.models.SVGP``; ``q_mu`` and ``q_sqrt`` belong to u,
    ``q_mu_orthogonal`` and ``q_sqrt_orthogonal`` to v'.

    :param kernel: With one output; or ``gpflow.kernels.SharedIndependent``,
        ``SeparateIndependent`` or ``LinearCoregionalization``, and for each of the two sets one
        inducing variable for all latent GPs, or
        :class:`interdomain.inducing_variables.SeparateIndependentInducingVariables`.
    :param likelihood: Any of GPflow's.
    :param inducing_variable: The base u, for which there are ``Kuu`` and ``Kuf``.
    :param orthogonal_inducing_variable: v; with the base it needs a registered
        :func:`interdomain.covariances.Kvu` (if one of the two is ``InducingPoints``, there is one).
    :param variant: "solve": q(v') has a covariance of its own (SOLVE-GP). "odvgp": it is the
        prior's, so that v' adds to the mean alone (Salimbeni et al. 2018); there is no
        ``q_sqrt_orthogonal`` then.
    :param mean_function: Added to f.
    :param num_latent_gps: The number P of latent GPs with the same prior, 1 by default; a kernel
        of several outputs has its own.
    :param q_diag: Whether the covariances of both q's are diagonal.
    :param q_mu: Initial values ``[M, P]``; zeros by default.
    :param q_sqrt: Initial values ``[P, M, M]``, or ``[M, P]`` if ``q_diag``; the identity by
        default.
    :param q_mu_orthogonal: Initial values ``[K, P]``; zeros by default.
    :param q_sqrt_orthogonal: Initial values ``[P, K, K]``, or ``[K, P]`` if ``q_diag``; the
        identity by default.
    :param whiten: Whether both q's are over the whitened variables.
    :param num_data: The number of rows of the whole data set, where minibatches are used.
    :param allow_large: Whether to make a q_sqrt of more than 4 GiB.
    :raises ValueError: If there is no covariance between the two sets, they do not fit the kernel,
        ``num_latent_gps`` is not that of a kernel of several outputs, or it is not known what
        latent GPs that is made of, ``variant`` is unknown, or a q does not fit.
    :warns UserWarning: If u determines some or all of the orthogonal variables (S_vf = 0 for them:
        they change nothing). Two sets of harmonics with shared degrees are such a case.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        *,
        variant: Literal["solve", "odvgp"] = "solve",
        mean_function: MeanFunction | None = None,
        num_latent_gps: int | None = None,
        q_diag: bool = False,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
        q_mu_orthogonal: TensorType | None = None,
        q_sqrt_orthogonal: TensorType | None = None,
        whiten: bool = True,
        num_data: int | TensorType | None = None,
        allow_large: bool = False,
    ) -> None:
        super().__init__(
            kernel,
            likelihood,
            inducing_variable,
            mean_function=mean_function,
            num_latent_gps=num_latent_gps,
            whiten=whiten,
            num_data=num_data,
        )
        validate_inducing_variable("orthogonal_inducing_variable", orthogonal_inducing_variable)
        self.variant = variant
        self.orthogonal_inducing_variable = orthogonal_inducing_variable
        q = orthogonal_q(
            self._pair,
            variant,
            self.num_latent_gps,
            q_diag=q_diag,
            q_mu=q_mu,
            q_sqrt=q_sqrt,
            q_mu_orthogonal=q_mu_orthogonal,
            q_sqrt_orthogonal=q_sqrt_orthogonal,
            allow_large=allow_large,
        )
        warn_of_determined_variables(kernel, self._pair)
        self.q_mu, self.q_sqrt = q.q_mu, q.q_sqrt
        self.q_mu_orthogonal: gpflow.Parameter = q.q_mu_orthogonal
        self.q_sqrt_orthogonal: gpflow.Parameter | None = q.q_sqrt_orthogonal

    @property
    def variational_parameters(self) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
        """The pairs (q_mu, q_sqrt), as ``NaturalGradient.minimize`` of GPflow takes them.

        That of u alone for "odvgp", whose q(v') has no covariance to be trained; its mean is left
        to the other optimizer. A step moves both q's at once, each as if the other stood still.
        For a Gaussian likelihood and all of the data that converges for every step size up to one;
        for others, and for minibatches, take half of what an SVGP bears, or less.
        """
        return self._q.pairs()

    def marginals_and_kl(self, X: TensorType) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        return marginals_and_kl(self._groups, X)

    @inherit_check_shapes
    def prior_kl(self) -> tf.Tensor:
        return tf.add_n([group.kl() for group in self._groups])

    def posterior(
        self,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> OrthogonalPosterior:
        """The posterior, for repeated predictions; caches as in GPflow."""
        return OrthogonalPosterior(
            self.kernel,
            *self._pair,
            *self._q,
            whiten=self.whiten,
            mean_function=self.mean_function,
            precompute_cache=precompute_cache,
        )

    @property
    def _pair(self) -> OrthogonalPair:
        return OrthogonalPair(self.inducing_variable, self.orthogonal_inducing_variable)

    @property
    def _groups(self) -> list[OrthogonalGroup]:
        return orthogonal_groups(self._pair, self.kernel, self._q, whiten=self.whiten)

    @property
    def _q(self) -> OrthogonalQ:
        return OrthogonalQ(self.q_mu, self.q_sqrt, self.q_mu_orthogonal, self.q_sqrt_orthogonal)
