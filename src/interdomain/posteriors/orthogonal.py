"""The posterior of orthogonally decoupled inference, as GPflow's posteriors are."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.conditionals.util import expand_independent_outputs
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction
from gpflow.posteriors import (
    PrecomputeCacheType,
    PrecomputedValue,
    _validate_precompute_cache_type,
)

from .gaussian import is_diagonal
from .inputs import TakesRealInputs
from .orthogonal_terms import (
    OrthogonalPair,
    Variational,
    factorise,
    posterior_covariance,
    posterior_mean,
    posterior_variances,
    whitened_residuals,
    whitened_variational,
)
from .shapes import covariances_with, mean_and_covariance, prior_covariances


class OrthogonalPosterior(TakesRealInputs):
    """The posterior of :class:`interdomain.models.OrthogonalSVGP`.

    :param kernel: The kernel.
    :param inducing_variable: The base.
    :param orthogonal_inducing_variable: The orthogonal one.
    :param q_mu: ``[M, P]``.
    :param q_sqrt: ``[M, P]`` or ``[P, M, M]``.
    :param q_mu_orthogonal: ``[K, P]``.
    :param q_sqrt_orthogonal: ``[K, P]`` or ``[P, K, K]``; None for the prior's covariance.
    :param whiten: Whether both q's are over the whitened variables.
    :param mean_function: Added to the mean.
    :param precompute_cache: "tensor", "variable" or "nocache", as in GPflow.
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
        self._pair = OrthogonalPair(inducing_variable, orthogonal_inducing_variable)
        self._q = Variational(q_mu, q_sqrt, q_mu_orthogonal, q_sqrt_orthogonal)
        self.whiten = whiten
        self.update_cache(_validate_precompute_cache_type(precompute_cache))

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        """``L_u^{-1}`` (its diagonal, if that is all), ``L_v^{-1}``, ``L_v^{-1} B^T``, and the
        whitened q."""
        roots = factorise(self._pair, self.kernel)
        if is_diagonal(roots.base):
            inverse = 1 / roots.base.diag_part()
        else:
            size = roots.base.domain_dimension_tensor()
            inverse = roots.base.solve(tf.eye(size, dtype=roots.base.dtype))
        size = roots.orthogonal.domain_dimension_tensor()
        q = whitened_variational(None if self.whiten else roots, self._q)
        values = [
            inverse,
            roots.orthogonal.solve(tf.eye(size, dtype=inverse.dtype)),
            roots.orthogonal.solve(tf.linalg.matrix_transpose(roots.cross)),
            *(value for value in q if value is not None),
        ]
        return tuple(PrecomputedValue(value, (False,) * value.shape.rank) for value in values)

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        roots = factorise(self._pair, self.kernel)
        q = whitened_variational(None if self.whiten else roots, self._q)
        columns, orthogonal_columns = self._columns(Xnew, full_cov)
        A = roots.base.solve(columns)
        D = whitened_residuals(roots, A, orthogonal_columns)
        return self._conditional(Xnew, A, D, q, full_cov, full_output_cov)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        inverse, orthogonal_inverse, cross, q_mu, q_sqrt, q_mu_orthogonal, *rest = cache
        columns, orthogonal_columns = self._columns(Xnew, full_cov)
        A = inverse[:, None] * columns if inverse.shape.rank == 1 else inverse @ columns
        D = orthogonal_inverse @ orthogonal_columns - cross @ A
        whitened = Variational(q_mu, q_sqrt, q_mu_orthogonal, rest[0] if rest else None)
        return self._conditional(Xnew, A, D, whitened, full_cov, full_output_cov)

    def _columns(self, Xnew: TensorType, full_cov: bool) -> tuple[tf.Tensor, tf.Tensor]:
        base, orthogonal = self._pair
        return (
            covariances_with(base, self.kernel, Xnew, full_cov),
            covariances_with(orthogonal, self.kernel, Xnew, full_cov),
        )

    def _conditional(
        self,
        Xnew: TensorType,
        A: tf.Tensor,
        D: tf.Tensor,
        q: Variational,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        kff = prior_covariances(self.kernel, Xnew, full_cov)
        covariance = posterior_covariance if full_cov else posterior_variances
        mean, cov = mean_and_covariance(
            Xnew, posterior_mean(A, D, q), covariance(A, D, kff, q), full_cov
        )
        return mean, expand_independent_outputs(cov, full_cov, full_output_cov)
