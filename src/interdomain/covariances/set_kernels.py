"""Covariances of set kernels: van der Wilk et al. 2017, eqs. 15, 16, 19, D.31 and D.32."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables.set_points import SetInducingVariables
from ..kernels import SetKernel
from ..kernels._columns import num_columns
from .columns import num_input_columns
from .dispatch import Kuf_shapes, Kuu_shapes, Kvu, Kvu_shapes, with_jitter


@num_input_columns.register(SetInducingVariables, SetKernel)
def num_input_columns_set_kernel(
    inducing_variable: SetInducingVariables, kernel: SetKernel
) -> int | None:
    """The kernel's number; or the points', if they are in the space of X."""
    of_points = inducing_variable.Z.shape[-1] if kernel.point_dim is None else None
    return num_columns(kernel, kernel.input_dim or of_points)


@Kuf.register(SetInducingVariables, SetKernel, object)
@Kuf_shapes
def Kuf_set_kernel(
    inducing_variable: SetInducingVariables, kernel: SetKernel, Xnew: TensorType
) -> tf.Tensor:
    """``sum_p w_p k_g(z, x_p)``."""
    return kernel.point_covariance(inducing_variable.points(kernel), Xnew)


@Kuu.register(SetInducingVariables, SetKernel)
@Kuu_shapes
def Kuu_set_kernel(
    inducing_variable: SetInducingVariables, kernel: SetKernel, *, jitter: float = 0.0
) -> tf.Tensor:
    """``k_g(z, z')``."""
    return with_jitter(kernel.point_kernel(inducing_variable.points(kernel)), jitter)


@Kvu.register(SetInducingVariables, SetInducingVariables, SetKernel)
@Kvu_shapes
def Kvu_set_kernel(
    iv_v: SetInducingVariables, iv_u: SetInducingVariables, kernel: SetKernel
) -> tf.Tensor:
    """``k_g(w, z)``."""
    return kernel.point_kernel(iv_v.points(kernel), iv_u.points(kernel))
