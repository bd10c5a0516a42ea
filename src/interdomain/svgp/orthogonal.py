"""Sparse variational inference with a second, orthogonal set of inducing variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.likelihoods import Likelihood

from .._arguments import choice, warn
from ..core.inputs import validate_inducing_variable
from ..core.latents import latent_gps
from ..posteriors import OrthogonalPosterior
from ..posteriors.orthogonal_terms import (
    OrthogonalGroup,
    OrthogonalPair,
    OrthogonalQ,
    orthogonal_groups,
    residual_shares,
)
from .initial_q import Pair, WithQ
from .one_pass import OnePassSVGP


class WithOrthogonalQ(WithQ):
    """A q of the base u, and one of the orthogonal inducing variables v'."""

    orthogonal_inducing_variable: InducingVariables

    def _make_q(
        self,
        *,
        orthogonal_inducing_variable: InducingVariables,
        variant: Literal["solve", "odvgp"] = "solve",
        q_diag: bool = False,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
        q_mu_orthogonal: TensorType | None = None,
        q_sqrt_orthogonal: TensorType | None = None,
        allow_large: bool = False,
    ) -> None:
        """Make both q's.

        :param variant: "solve", or "odvgp" for a q(v') with the prior's covariance.
        :raises ValueError: If the variant is unknown, or does not go with the given values, or one
            of these has another shape.
        """
        validate_inducing_variable("orthogonal_inducing_variable", orthogonal_inducing_variable)
        self.orthogonal_inducing_variable = orthogonal_inducing_variable
        self._check_parts()
        self.variant = choice("variant", variant, ("solve", "odvgp"))
        if variant == "odvgp" and q_sqrt_orthogonal is not None:
            raise ValueError(
                "q_sqrt_orthogonal: with variant='odvgp' the covariance of q(v') is the prior's; "
                "leave it out, or pass variant='solve'."
            )
        make = partial(self._new_pair, q_diag=q_diag, allow_large=allow_large)
        sizes = [int(part.num_inducing) for part in self._pair]
        self.q_mu, self.q_sqrt = make("", "inducing_variable", sizes[0], q_mu, q_sqrt)
        values = q_mu_orthogonal, q_sqrt_orthogonal
        self.q_mu_orthogonal, root = make(
            "_orthogonal", "orthogonal_inducing_variable", sizes[1], *values
        )
        self.q_sqrt_orthogonal = root if variant == "solve" else None
        _warn_of_determined_variables(self.kernel, self._pair)

    @property
    def variational_parameters(self) -> list[Pair]:
        """The pairs (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes.

        With "odvgp" there is only the pair of u: q(v') has no covariance to be trained, and its
        mean is left to the other optimizer. A step moves both q's at once, each as if the other
        were fixed. With a Gaussian likelihood and all of the data, this converges for every step
        size up to one. For other likelihoods, and for minibatches, use at most half the step size
        that works for an SVGP.
        """
        pairs = [(self.q_mu, self.q_sqrt), (self.q_mu_orthogonal, self.q_sqrt_orthogonal)]
        return pairs[: 1 if self.q_sqrt_orthogonal is None else 2]

    @property
    def _pair(self) -> OrthogonalPair:
        return OrthogonalPair(self.inducing_variable, self.orthogonal_inducing_variable)

    @property
    def _q(self) -> OrthogonalQ:
        return OrthogonalQ(self.q_mu, self.q_sqrt, self.q_mu_orthogonal, self.q_sqrt_orthogonal)

    @property
    def _groups(self) -> Sequence[OrthogonalGroup]:
        return orthogonal_groups(self._pair, self.kernel, self._q, whiten=self.whiten)

    @property
    def _posterior(self) -> Callable[..., OrthogonalPosterior]:
        return partial(OrthogonalPosterior, self.kernel, *self._pair, *self._q)


class OrthogonalSVGP(WithOrthogonalQ, OnePassSVGP):
    """SVGP with orthogonally decoupled inducing variables: SOLVE-GP and ODVGP, for any two sets.

    The base u explains f as in an SVGP. The rest, ``h = f - E[f | u]``, is independent of u a
    priori, and a second set of inducing variables v' describes h: ``q(u, v') = q(u) q(v')`` (Shi et
    al. 2020; Tiao et al. 2023, eqs. 8-12). M base and K orthogonal variables cost two
    factorisations, of sizes M and K, where an SVGP with all of them has one of size M + K. A base
    of :class:`interdomain.inducing_variables.SphericalHarmonics` costs none. Points as orthogonal
    variables recover what activation features or harmonics leave out.

    Use it like a ``gpflow.models.SVGP``. ``q_mu`` and ``q_sqrt`` belong to u, ``q_mu_orthogonal``
    and ``q_sqrt_orthogonal`` to v'.

    :param kernel: A kernel of one output; or ``gpflow.kernels.SharedIndependent``,
        ``SeparateIndependent`` or ``LinearCoregionalization``, with one inducing variable for all
        latent GPs in each of the two sets, or
        :class:`interdomain.inducing_variables.SeparateIndependentInducingVariables`.
    :param likelihood: Any of GPflow's.
    :param inducing_variable: The base u, for which there are ``Kuu`` and ``Kuf``.
    :param orthogonal_inducing_variable: The second set v. The pair needs a registered
        :func:`interdomain.covariances.Kvu`; there is one if either is ``InducingPoints``.
    :param variant: "solve": q(v') has its own covariance (SOLVE-GP). "odvgp": it has the covariance
        of the prior, so that v' contributes to the mean alone (Salimbeni et al. 2018); then there
        is no ``q_sqrt_orthogonal``.
    :param mean_function: Added to f.
    :param num_latent_gps: The number P of latent GPs with the same prior, 1 by default. Leave it
        out for a kernel of several outputs, which determines the number.
    :param q_diag: Whether the covariances of both q's are diagonal.
    :param q_mu: Initial values ``[M, P]``; zeros by default.
    :param q_sqrt: Initial values ``[P, M, M]``, or ``[M, P]`` if ``q_diag``; the identity by
        default.
    :param q_mu_orthogonal: Initial values ``[K, P]``; zeros by default.
    :param q_sqrt_orthogonal: Initial values ``[P, K, K]``, or ``[K, P]`` if ``q_diag``; the
        identity by default.
    :param whiten: Whether both q's are over the whitened variables.
    :param num_data: The number of rows of the whole data set, if minibatches are used.
    :param allow_large: Whether to allow a q_sqrt of more than 4 GiB.
    :raises ValueError: If there is no covariance between the two sets, they do not fit the kernel,
        ``num_latent_gps`` is not the number of latent GPs of a kernel of several outputs, the
        latent GPs of such a kernel are not known, ``variant`` is unknown, or a q does not fit or is
        too large.
    :warns UserWarning: If u determines some or all of the orthogonal variables. These have no
        effect, as S_vf = 0 for them. Two sets of harmonics with shared degrees are such a case.
    """

    def __init__(
        self,
        kernel: Kernel,
        likelihood: Likelihood,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        **options: Any,
    ) -> None:
        options["orthogonal_inducing_variable"] = orthogonal_inducing_variable
        super().__init__(kernel, likelihood, inducing_variable, **options)


def _warn_of_determined_variables(kernel: Kernel, pair: OrthogonalPair) -> None:
    """Warn where the base determines some of the orthogonal variables."""
    for latents in latent_gps(kernel, *pair):
        own = OrthogonalPair(*latents.inducing_variables)
        # Of the variance of each orthogonal variable, what the base leaves.
        shares = tf.get_static_value(residual_shares(own, latents.kernel))
        if shares is None:  # inside a compiled function
            continue
        determined = np.flatnonzero(shares < max(1e-5, 1e3 * np.finfo(shares.dtype).eps))
        if len(determined) == 0:
            continue
        effect = "S_vf = 0, and the model is no more than an SVGP with the base"
        if len(determined) < len(shares):
            effect = f"S_vf = 0 for them (rows {determined[:10].tolist()}...), and they add nothing"
        base, orthogonal = (type(part).__name__ for part in own)
        warn(
            f"orthogonal_inducing_variable: the base ({base}) determines {len(determined)} of its "
            f"{len(shares)} variables ({orthogonal}): {effect}. Choose variables that the base "
            "lacks, such as points elsewhere or harmonics of other degrees."
        )
