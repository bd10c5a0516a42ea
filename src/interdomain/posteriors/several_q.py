"""The posteriors of models with several independent q: of sums, and orthogonally decoupled."""

from __future__ import annotations

from collections.abc import Sequence

from gpflow.base import TensorType
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import PrecomputeCacheType, _validate_precompute_cache_type

from .blockwise import BlockwisePosterior
from .groups import BlockGroup, additive_groups
from .orthogonal_terms import OrthogonalGroup, OrthogonalPair, OrthogonalQ, orthogonal_groups


class AdditivePosterior(BlockwisePosterior):
    """The posterior of :class:`interdomain.models.AdditiveSVGP`, to be used like GPflow's.

    :param kernel: The whole kernel.
    :param inducing_variable: The inducing variable, with all its blocks.
    :param q_mu: The means of the blocks, ``[m_t, P]`` each.
    :param q_sqrt: The roots of the covariances of the blocks, ``[m_t, P]`` or ``[P, m_t, m_t]``
        each.
    :param whiten: Whether q is over the whitened variables.
    :param mean_function: Added to the mean.
    :param precompute_cache: "tensor", "variable" or "nocache", as in GPflow.
    :param devices: The devices on which ``fused_predict_f`` computes the blocks. Cached predictions
        do not use them.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        q_mu: Sequence[TensorType],
        q_sqrt: Sequence[TensorType],
        *,
        whiten: bool,
        mean_function: MeanFunction | None = None,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
        devices: Sequence[str] | None = None,
    ) -> None:
        super().__init__(kernel, inducing_variable, mean_function=mean_function)
        self.q_mu = list(q_mu)
        self.q_sqrt = list(q_sqrt)
        self.whiten = whiten
        self._devices = None if devices is None else tuple(devices)
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def _groups(self, *, kept: bool = False) -> Sequence[BlockGroup]:
        return additive_groups(
            self.X_data,
            self.kernel,
            None if kept else list(zip(self.q_mu, self.q_sqrt, strict=True)),
            whiten=self.whiten,
            devices=None if kept else self._devices,
        )


class OrthogonalPosterior(BlockwisePosterior):
    """The posterior of :class:`interdomain.models.OrthogonalSVGP`, to be used like GPflow's.

    :param kernel: The kernel.
    :param inducing_variable: The base u.
    :param orthogonal_inducing_variable: The orthogonal inducing variable v.
    :param q_mu: The mean of q(u), ``[M, P]``.
    :param q_sqrt: A root of its covariance, ``[M, P]`` or ``[P, M, M]``.
    :param q_mu_orthogonal: The mean of q(v'), ``[K, P]``.
    :param q_sqrt_orthogonal: A root of its covariance, ``[K, P]`` or ``[P, K, K]``; None for the
        prior's covariance.
    :param whiten: Whether both q's are over the whitened variables.
    :param mean_function: Added to the mean.
    :param precompute_cache: "tensor", "variable" or "nocache", as in GPflow.
    :ivar pair: Both inducing variables.
    :ivar q: Both q's.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_variable: InducingVariables,
        orthogonal_inducing_variable: InducingVariables,
        q_mu: TensorType,
        q_sqrt: TensorType,
        q_mu_orthogonal: TensorType,
        q_sqrt_orthogonal: TensorType | None,
        *,
        whiten: bool,
        mean_function: MeanFunction | None = None,
        precompute_cache: PrecomputeCacheType | str | None = PrecomputeCacheType.TENSOR,
    ) -> None:
        super().__init__(kernel, inducing_variable, mean_function=mean_function)
        self.pair = OrthogonalPair(inducing_variable, orthogonal_inducing_variable)
        self.q = OrthogonalQ(q_mu, q_sqrt, q_mu_orthogonal, q_sqrt_orthogonal)
        self.whiten = whiten
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def _groups(self, *, kept: bool = False) -> Sequence[OrthogonalGroup]:
        q = None if kept else self.q
        return orthogonal_groups(self.pair, self.kernel, q, whiten=self.whiten)
