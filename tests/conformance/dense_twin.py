"""The oracle: the same inducing variable, but GPflow knows nothing of its structure.

GPflow then uses its own posterior, KL divergence, conditional and Cholesky factors.

Whitened variables are ``L^{-1} u``, and stand for another u with another root L of Kuu. Where this
library's is not GPflow's Cholesky factor (diagonal plus low rank), a twin that is used with
whitened variables has these as its own: Kuu is I, and Kuf is ``L^{-1} Kuf`` with a dense L. (That
L L^T is Kuu is tested in tests/covariances/test_interval_fourier_features.py.)
"""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import Shape, disable_check_shapes
from gpflow.base import InputData, MeanAndVariance, RegressionData, TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import IntervalFourierFeatures, SumInducingVariables
from interdomain.posteriors.gaussian import square_root


class DenseTwin(InducingVariables):
    """Wraps an inducing variable and shows GPflow its dense Kuu and Kuf alone.

    :param whiten: Whether q is given in terms of whitened variables.
    """

    def __init__(self, inducing_variable: InducingVariables, *, whiten: bool = False) -> None:
        super().__init__()
        self.inducing_variable = inducing_variable
        self.in_whitened_variables = whiten and not has_triangular_root(inducing_variable)

    @property
    def num_inducing(self) -> int:
        return self.inducing_variable.num_inducing

    @property
    def shape(self) -> Shape:
        return self.inducing_variable.shape


def has_triangular_root(inducing_variable: InducingVariables) -> bool:
    """Whether the library whitens with the Cholesky factor of Kuu."""
    if isinstance(inducing_variable, SumInducingVariables):
        return all(has_triangular_root(block) for block in inducing_variable.inducing_variables)
    return not isinstance(inducing_variable, IntervalFourierFeatures)


@Kuu.register(DenseTwin, Kernel)
def kuu_dense_twin(twin: DenseTwin, kernel: Kernel, *, jitter: float = 0.0) -> tf.Tensor:
    if twin.in_whitened_variables:
        return tf.eye(twin.num_inducing, dtype=gpflow.default_float())
    dense = Kuu(twin.inducing_variable, kernel)
    return dense + jitter * tf.eye(dense.shape[0], dtype=dense.dtype)


@Kuf.register(DenseTwin, Kernel, object)
def kuf_dense_twin(twin: DenseTwin, kernel: Kernel, Xnew: TensorType) -> tf.Tensor:
    features = Kuf(twin.inducing_variable, kernel, Xnew)
    if not twin.in_whitened_variables:
        return features
    root = square_root(Kuu_operator(twin.inducing_variable, kernel)).to_dense()
    return tf.linalg.solve(root, features)


class Oracle(gpflow.models.SVGP):
    """Without check_shapes, which takes time: it is the model that is compared whose shapes are
    checked."""

    def elbo(self, data: RegressionData) -> tf.Tensor:
        with disable_check_shapes():
            return super().elbo(data)

    def predict_f(self, Xnew: InputData, **options: bool) -> MeanAndVariance:
        with disable_check_shapes():
            return super().predict_f(Xnew, **options)


def dense_twin(model: gpflow.models.SVGP) -> gpflow.models.SVGP:
    """The same SVGP over the dense twin: it shares every parameter with ``model``."""
    twin = Oracle(
        model.kernel,
        model.likelihood,
        densify(model.inducing_variable, whiten=model.whiten),
        mean_function=model.mean_function,
        num_latent_gps=model.num_latent_gps,
        q_diag=model.q_sqrt.shape.rank == 2,
        whiten=model.whiten,
        num_data=model.num_data,
    )
    twin.q_mu, twin.q_sqrt = model.q_mu, model.q_sqrt
    return twin


def densify(inducing_variable: InducingVariables, *, whiten: bool) -> InducingVariables:
    """The dense twin; the multi-output wrappers are kept, and their contents replaced. What is
    wrapped is used by GPflow's own posteriors, which whiten with the Cholesky factor."""
    if isinstance(inducing_variable, gpflow.inducing_variables.SharedIndependentInducingVariables):
        return type(inducing_variable)(DenseTwin(inducing_variable.inducing_variable))
    if isinstance(
        inducing_variable, gpflow.inducing_variables.SeparateIndependentInducingVariables
    ):
        return type(inducing_variable)(
            [DenseTwin(inner) for inner in inducing_variable.inducing_variable_list]
        )
    return DenseTwin(inducing_variable, whiten=whiten)
