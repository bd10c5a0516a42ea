"""New inputs of any real type, as ``training.fit`` takes them."""

from __future__ import annotations

import gpflow
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import MeanAndVariance, TensorType
from gpflow.kernels import Kernel
from gpflow.posteriors import AbstractPosterior

from .._arguments import Array, numeric
from ..kernels._scaled_parts import validate_rows


def as_inputs(kernel: Kernel, Xnew: TensorType) -> tf.Tensor:
    """Xnew in ``gpflow.default_float()``.

    :raises ValueError: Unless it is real numbers, and, as an array, inputs of the kernel: a tensor
        may hold points in training, which a step has taken over a pole.
    """
    dtype = gpflow.default_float()
    if isinstance(Xnew, tfp.distributions.Distribution):
        Xnew = tf.convert_to_tensor(Xnew)  # the output of a layer of GPflux, which is a sample then
    if not tf.is_tensor(Xnew):
        values: Array = numeric("Xnew", Xnew, "[N, D]").astype(dtype, copy=False)
        validate_rows("Xnew", kernel, values)
        return tf.convert_to_tensor(values)
    if not (Xnew.dtype.is_floating or Xnew.dtype.is_integer or Xnew.dtype.is_bool):
        raise ValueError(f"Xnew must be real numbers, found entries of type {Xnew.dtype.name}.")
    return Xnew if Xnew.dtype == dtype else tf.cast(Xnew, dtype)


class TakesRealInputs(AbstractPosterior):
    """A posterior whose new inputs may be integers, or floats of another precision."""

    @inherit_check_shapes
    def predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return super().predict_f(as_inputs(self.kernel, Xnew), full_cov, full_output_cov)

    @inherit_check_shapes
    def fused_predict_f(
        self, Xnew: TensorType, full_cov: bool = False, full_output_cov: bool = False
    ) -> MeanAndVariance:
        return super().fused_predict_f(as_inputs(self.kernel, Xnew), full_cov, full_output_cov)
