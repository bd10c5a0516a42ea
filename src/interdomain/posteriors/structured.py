"""The posterior and the prior KL of every inter-domain inducing variable, written once."""

from __future__ import annotations

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.config import default_jitter
from gpflow.kernels import Kernel
from gpflow.kullback_leiblers import prior_kl
from gpflow.posteriors import IndependentPosterior, PrecomputedValue, get_posterior_class

from ..covariances import Kuu_operator
from ..inducing_variables import InterDomainInducingVariables
from .gaussian import (
    diagonal_marginals,
    is_diagonal,
    joint_covariance,
    kl_divergence,
    lower_triangle,
    marginal_variances,
    square_root,
    whiten_q_sqrt,
)
from .inputs import TakesRealInputs
from .shapes import covariances_with, mean_and_covariance, prior_covariances


class StructuredPosterior(TakesRealInputs, IndependentPosterior):
    """A sparse posterior that keeps the structure of ``Kuu_operator``.

    Used by stock GPflow models for every :class:`InterDomainInducingVariables`. A diagonal Kuu
    costs no Cholesky factor and no triangular solve, a block-diagonal one only those of its blocks.
    All latent GPs share one factorisation.
    """

    @inherit_check_shapes
    def _conditional_fused(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        kuu = Kuu_operator(self.X_data, self.kernel, jitter=default_jitter())
        columns = covariances_with(self.X_data, self.kernel, Xnew, full_cov)
        q_sqrt = lower_triangle(self.q_sqrt)
        q_is_diagonal = q_sqrt is None or q_sqrt.shape.rank == 2
        if is_diagonal(kuu) and q_is_diagonal and not full_cov:
            kff = prior_covariances(self.kernel, Xnew, full_cov=False)
            mean, cov = diagonal_marginals(
                columns, kff, kuu.diag_part(), self.q_mu, q_sqrt, self.whiten
            )
        else:
            root = square_root(kuu)
            A = root.solve(columns)
            features = A if self.whiten else root.solve(A, adjoint=True)
            mean = tf.matmul(features, self.q_mu, transpose_a=True)
            cov = self._covariance(Xnew, A, features, q_sqrt, full_cov)
        return self._to_output(Xnew, mean, cov, full_cov, full_output_cov)

    def _precompute(self) -> tuple[PrecomputedValue, ...]:
        """``Kuu^{-1} E[u]``, the whitening ``L^{-1}`` and, unless S = 0, the whitened q_sqrt.

        ``L^{-1}`` is a vector if Kuu is diagonal; the whitened q_sqrt is ``[M, P]`` if, moreover, S
        is. Positions are the same in every case, ranks tell the cases apart.
        """
        root = square_root(Kuu_operator(self.X_data, self.kernel, jitter=default_jitter()))
        q_mu, q_sqrt = self.q_mu, lower_triangle(self.q_sqrt)
        if not self.whiten:
            q_mu, q_sqrt = root.solve(q_mu), whiten_q_sqrt(root, q_sqrt)
        if is_diagonal(root):
            whitening = 1 / root.diag_part()
        else:
            size = root.domain_dimension_tensor()
            whitening = root.solve(tf.eye(size, dtype=root.dtype))
        values = [root.solve(q_mu, adjoint=True), whitening]
        if q_sqrt is not None:
            values.append(q_sqrt)
        return tuple(PrecomputedValue(value, (False,) * value.shape.rank) for value in values)

    @inherit_check_shapes
    def _conditional_with_precompute(
        self,
        cache: tuple[tf.Tensor, ...],
        Xnew: TensorType,
        full_cov: bool = False,
        full_output_cov: bool = False,
    ) -> MeanAndVariance:
        alpha, whitening, *rest = cache
        columns = covariances_with(self.X_data, self.kernel, Xnew, full_cov)
        if whitening.shape.rank == 1:
            A = whitening[:, None] * columns
        else:
            A = tf.matmul(whitening, columns)
        mean = tf.matmul(columns, alpha, transpose_a=True)
        cov = self._covariance(Xnew, A, A, rest[0] if rest else None, full_cov)
        return self._to_output(Xnew, mean, cov, full_cov, full_output_cov)

    def _covariance(
        self,
        Xnew: TensorType,
        A: tf.Tensor,
        features: tf.Tensor,
        q_sqrt: tf.Tensor | None,
        full_cov: bool,
    ) -> tf.Tensor:
        kff = prior_covariances(self.kernel, Xnew, full_cov)
        covariance = joint_covariance if full_cov else marginal_variances
        return covariance(A, kff, features, q_sqrt)

    def _to_output(
        self,
        Xnew: TensorType,
        mean: tf.Tensor,
        cov: tf.Tensor,
        full_cov: bool,
        full_output_cov: bool,
    ) -> MeanAndVariance:
        mean, cov = mean_and_covariance(Xnew, mean, cov, full_cov)
        return self._post_process_mean_and_cov(mean, cov, full_cov, full_output_cov)


@get_posterior_class.register(Kernel, InterDomainInducingVariables)
def get_structured_posterior_class(
    kernel: Kernel, inducing_variable: InterDomainInducingVariables
) -> type[StructuredPosterior]:
    """Every inter-domain inducing variable of this library has the structured posterior."""
    return StructuredPosterior


@prior_kl.register(InterDomainInducingVariables, Kernel, object, object)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "q_mu: [M, P]",
    "q_sqrt: [M_P_or_P_M_M...]",
    "return: []",
)
def prior_kl_inter_domain(
    inducing_variable: InterDomainInducingVariables,
    kernel: Kernel,
    q_mu: TensorType,
    q_sqrt: TensorType,
    whiten: bool = False,
) -> tf.Tensor:
    """``KL[q(u) || p(u)]``, with the factorisation of ``Kuu_operator``; none if ``whiten``."""
    root = None
    if not whiten:
        root = square_root(Kuu_operator(inducing_variable, kernel, jitter=default_jitter()))
    q_sqrt = lower_triangle(q_sqrt)
    return kl_divergence(tf.convert_to_tensor(q_mu), q_sqrt, root)
