"""Covariances of Fourier features: Shen et al. 2019, eqs. 35 and 36, in real numbers."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables import FourierFeatures
from ..kernels import HarmonizableComponent
from ..kernels._columns import as_rows
from ..kernels.spectral._algebra import fourier_correlations, fourier_covariance
from .dispatch import Kuf_shapes, Kuu_shapes, with_jitter


@Kuf.register(FourierFeatures, HarmonizableComponent, object)
@Kuf_shapes
def Kuf_fourier_features(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent, Xnew: TensorType
) -> tf.Tensor:
    """The real parts, then the imaginary ones, each over its standard deviation."""
    w = inducing_variable.validate_kernel(kernel)
    Xnew = tf.convert_to_tensor(Xnew)
    rows = as_rows(Xnew)
    columns = kept_rows(
        inducing_variable, fourier_covariance(kernel.tensors(), w, kernel.centred(rows))
    )
    shape = tf.concat([tf.shape(columns)[:1], tf.shape(Xnew)[:-1]], axis=0)
    return tf.reshape(columns, shape)


@Kuu.register(FourierFeatures, HarmonizableComponent)
@Kuu_shapes
def Kuu_fourier_features(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent, *, jitter: float = 0.0
) -> tf.Tensor:
    """Correlations, which the generalized spectral density at w and -w gives."""
    w = inducing_variable.validate_kernel(kernel)
    rows = kept_rows(inducing_variable, fourier_correlations(kernel.tensors(), w))
    matrix = kept_rows(inducing_variable, tf.linalg.matrix_transpose(rows))
    return with_jitter(matrix, jitter)


def kept_rows(inducing_variable: FourierFeatures, rows: tf.Tensor) -> tf.Tensor:
    """The rows of real parts and, but for w = 0, of imaginary ones; of all of them ``[2m, n]``."""
    count = int(inducing_variable.frequencies.shape[0])
    kept = inducing_variable.with_imaginary_part
    if len(kept) == count:
        return rows
    return tf.gather(rows, [*range(count), *(count + k for k in kept)])
