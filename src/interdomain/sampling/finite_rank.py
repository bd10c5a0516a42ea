"""Functions drawn from priors of finite rank: a draw of the features' weights is a function."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables

from ..covariances import Kuu_operator, Kvu
from ..inducing_variables import InterDomainInducingVariables
from ..kernels import FiniteRank
from ..linalg import square_root
from .draws import Draws, constant
from .priors import PriorSample, prior_sample, project, project_points


class FeatureSums(PriorSample):
    """``f(x) = sum_m w_m cov(u_m, f(x))``.

    :param kernel: The kernel whose features they are.
    :param inducing_variable: The features.
    :param weights: ``[S, M]``.
    """

    def __init__(
        self, kernel: FiniteRank, inducing_variable: InducingVariables, weights: tf.Tensor
    ) -> None:
        self.kernel, self.inducing_variable, self.weights = kernel, inducing_variable, weights

    @property
    def entries_per_row(self) -> int:
        return sum(map(int, self.weights.shape))

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self.weights, Kuf(self.inducing_variable, self.kernel, X))


@prior_sample.register(FiniteRank)
def prior_sample_finite_rank(kernel: FiniteRank, draws: Draws) -> PriorSample:
    """``Kuu^{-1} u`` for u drawn from its prior. This is exact and needs no random features."""
    own = kernel.inducing_variable
    root = square_root(Kuu_operator(own, kernel, jitter=gpflow.config.default_jitter()))
    white = constant(draws.weights(int(own.num_inducing), draws.num_samples))
    return FeatureSums(kernel, own, tf.transpose(root.solve(white, adjoint=True)))


@project.register(InterDomainInducingVariables, FiniteRank, FeatureSums)
def project_finite_rank(
    inducing_variable: InterDomainInducingVariables, kernel: FiniteRank, sample: FeatureSums
) -> tf.Tensor:
    """The given features of a function, from their covariances with the kernel's own features.

    :raises ValueError: If these covariances are not known.
    """
    own = sample.inducing_variable
    if inducing_variable is own:
        covariance = Kuu_operator(own, kernel).to_dense()
    else:
        covariance = Kvu(inducing_variable, own, kernel)
    return tf.matmul(sample.weights, covariance, transpose_b=True)


@project.register(InducingPoints, FiniteRank, FeatureSums)
def project_finite_rank_points(
    inducing_variable: InducingPoints, kernel: FiniteRank, sample: FeatureSums
) -> tf.Tensor:
    """Values at the points; if they are the kernel's own points, the variables themselves."""
    if inducing_variable is sample.inducing_variable:
        covariance = Kuu_operator(inducing_variable, kernel).to_dense()
        return tf.matmul(sample.weights, covariance, transpose_b=True)
    return project_points(inducing_variable, kernel, sample)
