"""The oracle: the same inducing variable, but GPflow knows nothing of its structure.

GPflow then uses its own posterior, KL divergence, conditional and Cholesky factors.
"""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import Shape
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel


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


def dense_twin(model: gpflow.models.SVGP) -> gpflow.models.SVGP:
    """The same SVGP over the dense twin: it shares every parameter with ``model``."""
    twin = gpflow.models.SVGP(
        model.kernel,
        model.likelihood,
        densify(model.inducing_variable),
        mean_function=model.mean_function,
        num_latent_gps=model.num_latent_gps,
        q_diag=model.q_sqrt.shape.rank == 2,
        whiten=model.whiten,
        num_data=model.num_data,
    )
    twin.q_mu, twin.q_sqrt = model.q_mu, model.q_sqrt
    return twin


def densify(inducing_variable: InducingVariables) -> InducingVariables:
    """The dense twin; the multi-output wrappers are kept, and their contents replaced."""
    if isinstance(inducing_variable, gpflow.inducing_variables.SharedIndependentInducingVariables):
        return type(inducing_variable)(DenseTwin(inducing_variable.inducing_variable))
    if isinstance(
        inducing_variable, gpflow.inducing_variables.SeparateIndependentInducingVariables
    ):
        return type(inducing_variable)(
            [DenseTwin(inner) for inner in inducing_variable.inducing_variable_list]
        )
    return DenseTwin(inducing_variable)
