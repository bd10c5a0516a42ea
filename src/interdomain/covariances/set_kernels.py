"""Covariances of sums of responses: van der Wilk et al. 2017, eqs. 15, 16, 19, D.31 and D.32."""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables.responses import ResponseInducingVariables
from ..kernels import ResponseSum
from .dispatch import Kvu


@Kuf.register(ResponseInducingVariables, ResponseSum, object)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "Xnew: [batch..., N, E]",
    "return: [M, batch..., N]",
)
def Kuf_responses(
    inducing_variable: ResponseInducingVariables, kernel: ResponseSum, Xnew: TensorType
) -> tf.Tensor:
    """``sum_p w_p k_g(z, x_p)``."""
    return kernel.response_covariance(inducing_variable.points(kernel), Xnew)


@Kuu.register(ResponseInducingVariables, ResponseSum)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M, M]",
)
def Kuu_responses(
    inducing_variable: ResponseInducingVariables, kernel: ResponseSum, *, jitter: float = 0.0
) -> tf.Tensor:
    """``k_g(z, z')``."""
    Z = inducing_variable.points(kernel)
    matrix = kernel.response_kernel(Z)
    diagonal = tf.linalg.diag_part(matrix) + tf.cast(jitter, gpflow.default_float())
    return tf.linalg.set_diag(matrix, diagonal)


@Kvu.register(ResponseInducingVariables, ResponseInducingVariables, ResponseSum)
@check_shapes(
    "iv_v: [K, D, 1]",
    "iv_u: [M, D, 1]",
    "return: [K, M]",
)
def Kvu_responses(
    iv_v: ResponseInducingVariables, iv_u: ResponseInducingVariables, kernel: ResponseSum
) -> tf.Tensor:
    """``k_g(w, z)``."""
    return kernel.response_kernel(iv_v.points(kernel), iv_u.points(kernel))
