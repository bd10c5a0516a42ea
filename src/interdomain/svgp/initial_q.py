"""The q's of models and layers: their parameters, and what they make."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    PrecomputeCacheType,
    _validate_precompute_cache_type,
)
from gpflow.utilities import positive, triangular

from .._arguments import Array, check_size, finite_array, items
from .._tracing import unconverted
from ..core.decomposed import DecomposedKernel
from ..core.family import flat_blocks
from ..core.latents import LatentGPs, latent_gps
from ..core.multioutput import num_inducing
from ..devices import move_parameters, resolve_devices
from ..posteriors import AdditivePosterior, StructuredPosterior
from ..posteriors.groups import (
    BlockGroup,
    Group,
    additive_groups,
    joint_groups,
    marginals_and_kl,
    outputs_of,
)

Pair = tuple[gpflow.Parameter, gpflow.Parameter]

_RANKS = (0, 1, 2, 3)


def _checked(name: str, count: str, given: TensorType | None, default: Array) -> Array:
    value = default if given is None else finite_array(name, given, _RANKS, "an array")
    if value.shape != default.shape:
        raise ValueError(
            f"{name} must have shape {default.shape}, found {value.shape}; {count} inducing "
            "variables."
        )
    return value.astype(gpflow.default_float())


def _blocks(latents: LatentGPs) -> list[InducingVariables]:
    """The blocks of inducing variables of some latent GPs."""
    return [block for block, _ in flat_blocks(latents.inducing_variables[0], latents.kernel)]


class WithQ(abc.ABC):
    """What models and layers have in common, whatever their q's are.

    A subclass implements ``_make_q``, which is called once there are the inducing variables,
    ``_groups``, ``_posterior`` and :attr:`variational_parameters`.
    """

    kernel: Kernel
    inducing_variable: InducingVariables
    mean_function: MeanFunction
    num_latent_gps: int
    whiten: bool
    q_mu: Any  # parameters, or lists of them
    q_sqrt: Any

    _make_q: Any
    _posterior: Any  # its class, with kernel, inducing variables and q

    def _check_parts(self) -> None:
        """Check that kernel and inducing variables fit each other, where that is known already."""
        return

    @property
    @abc.abstractmethod
    def variational_parameters(self) -> list[Pair]:
        """The pairs (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes."""

    @property
    @abc.abstractmethod
    def _groups(self) -> Sequence[Group]:
        """The latent GPs with their inducing variables and their q."""

    @unconverted
    def posterior(
        self, precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR
    ) -> Any:
        """The posterior, for repeated predictions; caches as in GPflow.

        If a cache is computed (outside of compiled functions), decomposed kernels are validated
        first.

        :raises ValueError: If training has made a harmonic kernel lose its invariance.
        """
        cache = _validate_precompute_cache_type(precompute_cache)
        if cache != PrecomputeCacheType.NOCACHE and tf.executing_eagerly():
            for module in (self.kernel, *self.kernel.submodules):
                if isinstance(module, DecomposedKernel):
                    module.validate()
        return self._posterior(
            whiten=self.whiten, mean_function=self.mean_function, precompute_cache=cache
        )

    @unconverted
    def prior_kl(self) -> tf.Tensor:
        """The KL divergence of all q's; nothing is factorised if they are whitened."""
        return tf.add_n([group.kl() for group in self._groups])

    @unconverted
    def marginals_and_kl(self, X: TensorType) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Mean and variance of the outputs, ``[N, P]`` each, at X ``[N, D]``, and the KL divergence
        of all q's, with a single factorisation of each Kuu."""
        mean, variance, kl = marginals_and_kl(self._groups, X)
        mean, variance = outputs_of(
            self.kernel, mean, variance, full_cov=False, full_output_cov=False
        )
        return mean + self.mean_function(X), variance, kl

    def _new_pair(
        self,
        suffix: str,
        owner: str,
        size: int,
        q_mu: TensorType | None,
        q_sqrt: TensorType | None,
        *,
        q_diag: bool,
        allow_large: bool,
    ) -> Pair:
        """The parameters of one q(u): zero mean and identity covariance by default.

        :param suffix: What follows "q_mu" and "q_sqrt" in their names, for messages.
        :param owner: Whose q it is, for messages.
        :param size: The number of inducing variables.
        :raises ValueError: If a given value has another shape, or both would be too large.
        """
        latents = self.num_latent_gps
        entries = float(size) * latents * (1 if q_diag else size)
        what = f"q_sqrt{suffix} of {latents:,} latent GPs and {size:,} inducing variables"
        check_size("num_latent_gps", what, entries, allow_large=allow_large)
        ones = np.ones((size, latents))
        roots = ones if q_diag else np.stack([np.eye(size)] * latents)
        mean = _checked(f"q_mu{suffix}", f"{owner} has {size}", q_mu, 0 * ones)
        root = _checked(f"q_sqrt{suffix}", f"{owner} has {size}", q_sqrt, roots)
        transform = positive() if q_diag else triangular()
        return gpflow.Parameter(mean), gpflow.Parameter(root, transform=transform)


class WithJointQ(WithQ):
    """One q for all inducing variables."""

    def _make_q(
        self,
        *,
        q_diag: bool = False,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
        allow_large: bool = False,
    ) -> None:
        """:raises ValueError: If a given value has another shape."""
        size = int(num_inducing(self.inducing_variable))
        self.q_mu, self.q_sqrt = self._new_pair(
            "", "inducing_variable", size, q_mu, q_sqrt, q_diag=q_diag, allow_large=allow_large
        )

    @property
    def variational_parameters(self) -> list[Pair]:
        """The pair (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes."""
        return [(self.q_mu, self.q_sqrt)]

    @property
    def _groups(self) -> Sequence[BlockGroup]:
        q = (self.q_mu, self.q_sqrt)
        return joint_groups(self.inducing_variable, self.kernel, q, whiten=self.whiten)

    @property
    def _posterior(self) -> Callable[..., StructuredPosterior]:
        q = (self.q_mu, self.q_sqrt)
        return partial(StructuredPosterior, self.kernel, self.inducing_variable, *q)


class WithBlocksOfQ(WithQ):
    """A q for each block of the inducing variables of a sum."""

    _devices: tuple[str, ...] | None

    def _make_q(
        self,
        *,
        q_diag: bool = False,
        q_mu: Sequence[TensorType] | None = None,
        q_sqrt: Sequence[TensorType] | None = None,
        allow_large: bool = False,
        devices: Sequence[str] | Literal["auto"] | None = None,
    ) -> None:
        """Make the q's.

        :param devices: Where they are made, in turn, and the blocks' own parameters with them.
        :raises ValueError: If there is not one given value for each block, or one has another
            shape, or some latent GPs have more blocks than others.
        """
        placed = resolve_devices(devices)
        groups = latent_gps(self.kernel, self.inducing_variable)
        if placed is not None:
            for latents in groups:
                move_parameters(self.inducing_variable, _blocks(latents), placed)
        blocks = [_blocks(latents) for latents in groups]
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
            # Latent GPs may have blocks of different sizes.
            size = max(int(block.num_inducing) for block in alike)
            values = [None if given is None else given[t] for given in (q_mu, q_sqrt)]
            with tf.device(placed[t % len(placed)] if placed else None):
                pair = self._new_pair(
                    f"[{t}]", f"block {t}", size, *values, q_diag=q_diag, allow_large=allow_large
                )
            pairs.append(pair)
        self.q_mu, self.q_sqrt = map(list, zip(*pairs, strict=True))
        self._devices = placed

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return len(self.q_mu)

    @property
    def variational_parameters(self) -> list[Pair]:
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

    @property
    def _posterior(self) -> Callable[..., AdditivePosterior]:
        parts = self.kernel, self.inducing_variable, self.q_mu, self.q_sqrt
        return partial(AdditivePosterior, *parts, devices=self._devices)
