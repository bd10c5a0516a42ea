"""Gaussian variational distributions q(u) of a model or a layer, as objects."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from operator import attrgetter
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

from ..._arguments import Array, check_size, finite_array, instance, integer
from ..._tracing import unconverted
from ...core.columns import validate_rows
from ...core.combined import num_inducing
from ...core.decomposed import DecomposedKernel
from ...core.domains import boxes
from ...core.inputs import check_parts, num_columns_of_latents, validate_inducing_variable
from ...core.latents import latent_gps
from ...core.pairs import boxed_parts
from ...posteriors.blockwise import BlockwisePosterior, cache_type
from ...posteriors.groups import Group, block_groups
from ...posteriors.marginals import marginals_and_kl, outputs_of
from ...training.natural_gradients import Pair

_FAR = 1e3
"""A coordinate far from the origin, where unbounded inputs are checked."""


class Q(gpflow.Module, abc.ABC):
    """A Gaussian q of inducing variables, which natural gradients train in a model or a layer.

    All methods receive the model's kernel. A subclass has ``q_mu`` and ``q_sqrt`` (parameters, or
    lists of them), :attr:`variational_parameters` and :meth:`groups`.

    :ivar inducing_variable: The inducing variables u.
    :ivar num_latent_gps: The number L of latent GPs.
    :ivar whiten: Whether q is over the whitened variables.
    """

    q_mu: Any
    q_sqrt: Any

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        num_latent_gps: int | None,
        whiten: bool,
        q_shared: bool = False,
    ) -> None:
        super().__init__()
        instance("kernel", kernel, Kernel, "a GPflow kernel")
        validate_inducing_variable("inducing_variable", inducing_variable)
        self.inducing_variable = inducing_variable
        if num_latent_gps is not None:
            num_latent_gps = integer("num_latent_gps", num_latent_gps, at_least=1)
        self._has_one_covariance = q_shared
        if q_shared and len(latent_gps(kernel, inducing_variable)) > 1:
            raise ValueError(
                "q_shared must be False for latent GPs with priors of their own, found True; leave "
                "it out, or pass a kernel and inducing variables that they share."
            )
        if isinstance(kernel, gpflow.kernels.MultioutputKernel):
            latent_gps(kernel)  # only kinds that are known
            expected = int(kernel.num_latent_gps)
            if num_latent_gps not in (None, expected):
                raise ValueError(
                    f"num_latent_gps must be {expected}, the number of the kernel's latent GPs, "
                    f"found {num_latent_gps}; leave it out."
                )
            num_latent_gps = expected
        self.num_latent_gps = num_latent_gps or 1
        self.whiten = whiten

    @property
    @abc.abstractmethod
    def variational_parameters(self) -> list[Pair]:
        """The pairs (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes."""

    @abc.abstractmethod
    def groups(self, kernel: Kernel) -> Any:
        """The latent GPs with their inducing variables and their parts of q."""

    @property
    def _sets(self) -> dict[str, InducingVariables]:
        """All inducing variables of q, by the names of their arguments."""
        return {"inducing_variable": self.inducing_variable}

    @unconverted
    def posterior(
        self,
        kernel: Kernel,
        mean_function: MeanFunction | None = None,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> QPosterior:
        """The posterior, for repeated predictions, with the caches of GPflow.

        :raises ValueError: If a cache is to be computed, outside of compiled functions, and
            training has broken the invariance of a harmonic kernel.
        """
        cache = cache_type(precompute_cache)
        if cache != PrecomputeCacheType.NOCACHE and tf.executing_eagerly():
            for module in (kernel, *kernel.submodules):
                if isinstance(module, DecomposedKernel):
                    module.validate()
        return QPosterior(kernel, self, mean_function, cache)

    @unconverted
    def prior_kl(self, kernel: Kernel) -> tf.Tensor:
        """The KL divergence of q from the prior. A whitened q needs no factorisation."""
        return tf.add_n([group.kl() for group in self.groups(kernel)])

    @unconverted
    def marginals_and_kl(
        self, kernel: Kernel, X: TensorType, mean_function: MeanFunction
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The mean and variance of the outputs, ``[N, P]`` each, at X ``[N, D]``, and the KL
        divergence of q, with one factorisation of each Kuu."""
        mean, variance, _, kl = marginals_and_kl(self.groups(kernel), X)
        mean, variance = outputs_of(kernel, mean, variance, full_cov=False, full_output_cov=False)
        return mean + mean_function(X), variance, kl

    @unconverted
    def latents_and_kl(
        self, kernel: Kernel, X: TensorType
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
        """The mean, the variance, and the prior variance given the inducing variables, of latent
        GPs at X ``[N, D]``, ``[N, L]`` each; and the KL divergence of q."""
        return marginals_and_kl(self.groups(kernel), X, left=True)

    def input_dim(self, kernel: Kernel) -> int | None:
        """The number of columns of X; None if kernel and inducing variables do not determine it."""
        return num_columns_of_latents(latent_gps(kernel, *self._sets.values()))

    def check_inputs(self, kernel: Kernel, num_columns: int) -> None:
        """:raises ValueError: Unless kernel and inducing variables accept ``num_columns`` of X."""
        check_parts(kernel, self._sets, num_columns)

    def check_unbounded_inputs(self, kernel: Kernel, num_columns: int) -> None:
        """:raises ValueError: If the features cover only a part of the space of inputs."""
        for latents in latent_gps(kernel, self.inducing_variable):
            pair = latents.inducing_variables[0], latents.kernel
            ends = [str(box) for box in boxes(*pair, num_columns)]
            clipped = (getattr(block, "clipped_to", None) for block, _ in boxed_parts(*pair))
            for end in (*ends, *filter(None, clipped)):
                raise ValueError(
                    "inducing_variable must see all of the outputs of the layer before, found "
                    f"{end}, which they leave; pass features without a box, such as "
                    "SphericalHarmonics."
                )
            validate_rows("inputs", latents.kernel, np.full([1, num_columns], _FAR))

    def _new_pair(
        self,
        suffix: str,
        owner: str,
        size: int,
        q_mu: TensorType | None,
        q_sqrt: TensorType | None,
        *,
        q_diag: bool,
    ) -> Pair:
        """The parameters of one q(u) of ``size`` variables: zero mean and identity covariance by
        default.

        :param suffix: The end of the names of q_mu and q_sqrt, for messages.
        :param owner: The owner of the variables, for messages.
        """
        latents = 1 if self._has_one_covariance else self.num_latent_gps
        entries = float(size) * latents * (1 if q_diag else size)
        what = f"q_sqrt{suffix} of {latents:,} latent GPs and {size:,} inducing variables"
        check_size("num_latent_gps", what, entries)
        mean = np.zeros((size, self.num_latent_gps))
        root = np.ones((size, latents)) if q_diag else np.stack([np.eye(size)] * latents)

        def checked(name: str, value: TensorType | None, default: Array) -> Array:
            values = default if value is None else finite_array(name, value, (2, 3), "an array")
            if values.shape != default.shape:
                raise ValueError(
                    f"{name} must have shape {default.shape}, found {values.shape}; {owner} has "
                    f"{size} inducing variables."
                )
            return values.astype(gpflow.default_float())

        transform = positive() if q_diag else triangular()
        return (
            gpflow.Parameter(checked(f"q_mu{suffix}", q_mu, mean)),
            gpflow.Parameter(checked(f"q_sqrt{suffix}", q_sqrt, root), transform=transform),
        )


class JointQ(Q):
    """A joint q of all inducing variables, as in ``gpflow.models.SVGP``.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> kernel = gpflow.kernels.Matern32()
    >>> points = gpflow.inducing_variables.InducingPoints(np.zeros([4, 2]))
    >>> q = idm.models.JointQ(kernel, points, num_latent_gps=3)
    >>> q.q_mu.shape, q.q_sqrt.shape
    (TensorShape([4, 3]), TensorShape([3, 4, 4]))

    :param kernel: The kernel of the model, of one output, or
        ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent``, ``LinearCoregionalization``.
    :param inducing_variable: One object for all latent GPs, or
        :class:`interdomain.inducing_variables.SeparateIndependentInducingVariables`.
    :param num_latent_gps: The number L of latent GPs with the same prior, 1 by default. Leave it
        out for a kernel of several outputs, which determines the number.
    :param whiten: Whether q is over the whitened variables.
    :param q_diag: Whether the covariance of q is diagonal.
    :param q_shared: Whether all latent GPs have the same covariance of q: ``q_sqrt`` has one entry
        in place of L, and a step takes one product of this size. For a Gaussian likelihood with one
        noise variance the optimal q has this form. Latent GPs are independent under q: the bound
        uses only their marginals, so covariances between them could only raise the KL divergence.
        ``idm.fit`` supports natural gradients for this q; GPflow's own optimizer does not.
    :param q_mu: Initial values ``[M, L]``; zeros by default.
    :param q_sqrt: Initial values ``[L, M, M]``, or ``[M, L]`` if ``q_diag``; the identity by
        default. L is 1 with ``q_shared``.
    :raises ValueError: If ``num_latent_gps`` is not the number of latent GPs of a kernel of several
        outputs; if the latent GPs of such a kernel are not known, or have different priors with
        ``q_shared``; or if q_mu or q_sqrt do not fit or are too large.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        *,
        num_latent_gps: int | None = None,
        whiten: bool = True,
        q_diag: bool = False,
        q_shared: bool = False,
        q_mu: TensorType | None = None,
        q_sqrt: TensorType | None = None,
    ) -> None:
        super().__init__(kernel, inducing_variable, num_latent_gps, whiten, q_shared)
        size = int(num_inducing(inducing_variable))
        self.q_mu, self.q_sqrt = self._new_pair(
            "", "inducing_variable", size, q_mu, q_sqrt, q_diag=q_diag
        )

    @property
    def variational_parameters(self) -> list[Pair]:
        """The pair (q_mu, q_sqrt), in the form that ``NaturalGradient.minimize`` takes."""
        return [(self.q_mu, self.q_sqrt)]

    def groups(self, kernel: Kernel) -> Any:
        q = [(self.q_mu, self.q_sqrt)]
        return block_groups(self.inducing_variable, kernel, q, whiten=self.whiten, joint=True)


class QPosterior(BlockwisePosterior):
    """The posterior of a model that has a :class:`Q`; use it like a posterior of GPflow."""

    def __init__(
        self,
        kernel: Kernel,
        q: Q,
        mean_function: MeanFunction | None,
        precompute_cache: PrecomputeCacheType,
    ) -> None:
        super().__init__(kernel, q.inducing_variable, mean_function=mean_function)
        self.q = q
        self.update_cache(precompute_cache)

    def groups(self) -> Sequence[Group]:
        return list(self.q.groups(self.kernel))


def q_attribute(name: str, doc: str) -> Any:
    """A property of a model that returns an attribute of its q."""
    return property(attrgetter(f"q.{name}"), doc=doc)
