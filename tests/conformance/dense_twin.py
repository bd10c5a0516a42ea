"""The oracle: the same inducing variable, but GPflow knows nothing of its structure.

GPflow then uses its own posterior, KL divergence, conditional and Cholesky factors.
"""

import gpflow
import tensorflow as tf
from check_shapes import Shape, disable_check_shapes
from gpflow.base import InputData, MeanAndVariance, RegressionData, TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import (
    InducingVariables,
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
)
from gpflow.kernels import Kernel, MultioutputKernel


class DenseTwin(InducingVariables):
    """Wraps an inducing variable and shows GPflow its dense Kuu and Kuf alone."""

    def __init__(self, inducing_variable: InducingVariables) -> None:
        super().__init__()
        self.inducing_variable = inducing_variable

    @property
    def num_inducing(self) -> int:
        return self.inducing_variable.num_inducing

    @property
    def shape(self) -> Shape:
        return self.inducing_variable.shape


@Kuu.register(DenseTwin, Kernel)
def kuu_dense_twin(twin: DenseTwin, kernel: Kernel, *, jitter: float = 0.0) -> tf.Tensor:
    dense = Kuu(twin.inducing_variable, kernel)
    return dense + jitter * tf.eye(dense.shape[0], dtype=dense.dtype)


@Kuf.register(DenseTwin, Kernel, object)
def kuf_dense_twin(twin: DenseTwin, kernel: Kernel, Xnew: TensorType) -> tf.Tensor:
    return Kuf(twin.inducing_variable, kernel, Xnew)


class Oracle(gpflow.models.SVGP):
    """Without check_shapes, which takes time: the other model's shapes are checked."""

    def elbo(self, data: RegressionData) -> tf.Tensor:
        with disable_check_shapes():
            return super().elbo(data)

    def predict_f(self, Xnew: InputData, **options: bool) -> MeanAndVariance:
        with disable_check_shapes():
            return super().predict_f(Xnew, **options)


def dense_twin(model: gpflow.models.SVGP) -> gpflow.models.SVGP:
    """The SVGP over the dense twin: it shares every parameter with ``model``."""
    twin = Oracle(
        model.kernel,
        model.likelihood,
        densify(model.inducing_variable, model.kernel),
        mean_function=model.mean_function,
        num_latent_gps=model.num_latent_gps,
        q_diag=model.q_sqrt.shape.rank == 2,
        whiten=model.whiten,
        num_data=model.num_data,
    )
    twin.q_mu, twin.q_sqrt = model.q_mu, model.q_sqrt
    return twin


def densify(inducing_variable: InducingVariables, kernel: Kernel) -> InducingVariables:
    """The dense twin; for several outputs inside of GPflow's own wrappers."""
    if isinstance(inducing_variable, SharedIndependentInducingVariables):
        return SharedIndependentInducingVariables(DenseTwin(inducing_variable.inducing_variable))
    if isinstance(inducing_variable, SeparateIndependentInducingVariables):
        return SeparateIndependentInducingVariables(
            [DenseTwin(inner) for inner in inducing_variable.inducing_variable_list]
        )
    if isinstance(kernel, MultioutputKernel):
        return SharedIndependentInducingVariables(DenseTwin(inducing_variable))
    return DenseTwin(inducing_variable)
