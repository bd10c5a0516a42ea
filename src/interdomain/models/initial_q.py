"""The q's that models and layers begin with: parameters, and checks of given values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import PrecomputeCacheType
from gpflow.utilities import positive, triangular

from .._arguments import check_size, choice, finite_array, items, warn
from .._tracing import unconverted
from ..covariances.latents import LatentGPs, latent_gps
from ..covariances.pairs import flat_blocks
from ..kernels import DecomposedKernel
from ..posteriors import AdditivePosterior, OrthogonalPosterior
from ..posteriors.groups import BlockGroup, additive_groups
from ..posteriors.orthogonal_terms import (
    OrthogonalGroup,
    OrthogonalPair,
    OrthogonalQ,
    orthogonal_groups,
    residual_shares,
)
from ..sphere._typing import Array

_RANKS = (0, 1, 2, 3)
_NO_CACHE = (None, "nocache", PrecomputeCacheType.NOCACHE)


def variational_pair(
    suffix: str,
    owner: str,
    size: int,
    num_latent_gps: int,
    *,
    q_diag: bool,
    q_mu: TensorType | None,
    q_sqrt: TensorType | None,
    allow_large: bool,
) -> tuple[gpflow.Parameter, gpflow.Parameter]:
    """The parameters of one q(u): zero mean and identity covariance by default.

    :param suffix: What follows "q_mu" and "q_sqrt" in their names, for messages.
    :param owner: Whose q it is, for messages.
    :param size: The number of inducing variables.
    :raises ValueError: If a given value has another shape, or both would be too large.
    """
    entries = float(size) * num_latent_gps * (1 if q_diag else size)
    what = f"q_sqrt{suffix} of {num_latent_gps:,} latent GPs and {size:,} inducing variables"
    check_size("num_latent_gps", what, entries, allow_large=allow_large)
    ones = np.ones((size, num_latent_gps))
    roots = ones if q_diag else np.stack([np.eye(size)] * num_latent_gps)
    mean = _checked(f"q_mu{suffix}", f"{owner} has {size}", q_mu, 0 * ones)
    root = _checked(f"q_sqrt{suffix}", f"{owner} has {size}", q_sqrt, roots)
    transform = positive() if q_diag else triangular()
    return gpflow.Parameter(mean), gpflow.Parameter(root, transform=transform)


def _checked(name: str, count: str, given: TensorType | None, default: Array) -> Array:
    value = default if given is None else finite_array(name, given, _RANKS, "an array")
    if value.shape != default.shape:
        raise ValueError(
            f"{name} must have shape {default.shape}, found {value.shape}; {count} inducing "
            "variables."
        )
    return value.astype(gpflow.default_float())


def blocks_of_latents(latents: LatentGPs) -> list[InducingVariables]:
    """The blocks of inducing variables of some latent GPs."""
    return [block for block, _ in flat_blocks(latents.inducing_variables[0], latents.kernel)]


class WithBlocksOfQ:
    """What a model and a layer of a sum have in common: a q for each block of inducing variables,
    and the posterior that they make."""

    kernel: Kernel
    inducing_variable: InducingVariables
    mean_function: MeanFunction
    num_latent_gps: int
    whiten: bool
    q_mu: Any  # lists of parameters, where GPflow and GPflux have one
    q_sqrt: Any
    _devices: tuple[str, ...] | None

    def _make_q(
        self,
        *,
        q_diag: bool,
        q_mu: Sequence[TensorType] | None,
        q_sqrt: Sequence[TensorType] | None,
        allow_large: bool,
        devices: tuple[str, ...] | None = None,
    ) -> None:
        """Make all q's, once there are the inducing variables.

        :param devices: Where they are made, in turn.
        :raises ValueError: If there is not one given value for each block, or one has another
            shape, or some latent GPs have more blocks than others.
        """
        groups = latent_gps(self.kernel, self.inducing_variable)
        blocks = [blocks_of_latents(latents) for latents in groups]
        numbers = [len(of_latents) for of_latents in blocks]
        if len(set(numbers)) > 1:
            raise ValueError(
                f"inducing_variable must have as many blocks for each latent GP, found {numbers}; "
                "pass kernels with the same number of summands."
            )
        rule = f"one entry per block, {numbers[0]}"
        for name, given in (("q_mu", q_mu), ("q_sqrt", q_sqrt)):
            if given is not None and len(items(name, given, f"a list of {rule}")) != numbers[0]:
                raise ValueError(f"{name} must have {rule}, found {len(given)}.")
        pairs = []
        for t, alike in enumerate(zip(*blocks, strict=True)):
            with tf.device(devices[t % len(devices)] if devices else None):
                pair = variational_pair(
                    f"[{t}]",
                    f"block {t}",
                    max(int(block.num_inducing) for block in alike),  # where latent GPs differ
                    self.num_latent_gps,
                    q_diag=q_diag,
                    q_mu=None if q_mu is None else q_mu[t],
                    q_sqrt=None if q_sqrt is None else q_sqrt[t],
                    allow_large=allow_large,
                )
            pairs.append(pair)
        self.q_mu, self.q_sqrt = map(list, zip(*pairs, strict=True))
        self._devices = devices

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.q_mu)

    @property
    def variational_parameters(self) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
        """The pairs (q_mu, q_sqrt) of the blocks, as ``NaturalGradient.minimize`` takes them."""
        return list(zip(self.q_mu, self.q_sqrt, strict=True))

    @property
    def _groups(self) -> Sequence[BlockGroup]:
        return additive_groups(
            self.inducing_variable,
            self.kernel,
            self.variational_parameters,
            whiten=self.whiten,
            devices=self._devices,
        )

    @unconverted
    def posterior(
        self,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> AdditivePosterior:
        """The posterior, for repeated predictions; caches as in GPflow.

        If a cache is computed (outside of compiled functions), decomposed kernels are validated
        first.

        :raises ValueError: If training has made a harmonic kernel lose its invariance.
        """
        if precompute_cache not in _NO_CACHE and tf.executing_eagerly():
            for module in (self.kernel, *self.kernel.submodules):
                if isinstance(module, DecomposedKernel):
                    module.validate()
        return AdditivePosterior(
            self.kernel,
            self.inducing_variable,
            self.q_mu,
            self.q_sqrt,
            whiten=self.whiten,
            mean_function=self.mean_function,
            precompute_cache=precompute_cache,
            devices=self._devices,
        )


class WithOrthogonalQ:
    """What a model and a layer with a base and orthogonal inducing variables have in common: the
    parameters of both q's, and the posterior that they make."""

    kernel: Kernel
    inducing_variable: InducingVariables
    orthogonal_inducing_variable: InducingVariables
    mean_function: MeanFunction
    num_latent_gps: int
    whiten: bool
    q_mu: gpflow.Parameter
    q_sqrt: gpflow.Parameter

    def _make_q(
        self,
        variant: str,
        *,
        q_diag: bool,
        q_mu: TensorType | None,
        q_sqrt: TensorType | None,
        q_mu_orthogonal: TensorType | None,
        q_sqrt_orthogonal: TensorType | None,
        allow_large: bool,
    ) -> None:
        """Make both q's, once there are the inducing variables.

        :param variant: "solve", or "odvgp" for a q(v') with the prior's covariance.
        :raises ValueError: If the variant is unknown, or does not go with the given values, or one
            of these has another shape.
        """
        self.variant = choice("variant", variant, ("solve", "odvgp"))
        if variant == "odvgp" and q_sqrt_orthogonal is not None:
            raise ValueError(
                "q_sqrt_orthogonal: with variant='odvgp' the covariance of q(v') is the prior's; "
                "leave it out, or pass variant='solve'."
            )
        make = partial(
            variational_pair,
            num_latent_gps=self.num_latent_gps,
            q_diag=q_diag,
            allow_large=allow_large,
        )
        sizes = [int(part.num_inducing) for part in self._pair]
        self.q_mu, self.q_sqrt = make("", "inducing_variable", sizes[0], q_mu=q_mu, q_sqrt=q_sqrt)
        self.q_mu_orthogonal, root = make(
            "_orthogonal",
            "orthogonal_inducing_variable",
            sizes[1],
            q_mu=q_mu_orthogonal,
            q_sqrt=q_sqrt_orthogonal,
        )
        self.q_sqrt_orthogonal = root if variant == "solve" else None
        _warn_of_determined_variables(self.kernel, self._pair)

    @property
    def variational_parameters(self) -> list[tuple[gpflow.Parameter, gpflow.Parameter]]:
        """The pairs (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes.

        With "odvgp" there is only the pair of u: q(v') has no covariance to be trained, and its
        mean is left to the other optimizer. A step moves both q's at once, each as if the other
        were fixed. With a Gaussian likelihood and all of the data, this converges for every step
        size up to one. For other likelihoods, and for minibatches, use at most half the step size
        that works for an SVGP.
        """
        return self._q.pairs()

    @property
    def _pair(self) -> OrthogonalPair:
        return OrthogonalPair(self.inducing_variable, self.orthogonal_inducing_variable)

    @property
    def _q(self) -> OrthogonalQ:
        return OrthogonalQ(self.q_mu, self.q_sqrt, self.q_mu_orthogonal, self.q_sqrt_orthogonal)

    @property
    def _groups(self) -> Sequence[OrthogonalGroup]:
        return orthogonal_groups(self._pair, self.kernel, self._q, whiten=self.whiten)

    @unconverted
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
