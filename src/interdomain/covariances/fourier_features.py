"""Covariances of Fourier features: Shen et al. 2019, eqs. 35 and 36, in real numbers."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu

from ..inducing_variables import FourierFeatures
from ..kernels import HarmonizableComponent


@Kuf.register(FourierFeatures, HarmonizableComponent, object)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "Xnew: [batch..., N, E]",
    "return: [M, batch..., N]",
)
def Kuf_fourier_features(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent, Xnew: TensorType
) -> tf.Tensor:
    """The real parts, then the imaginary ones, each over its standard deviation."""
    w = inducing_variable.validate_kernel(kernel)
    Xnew = tf.convert_to_tensor(Xnew)
    rows = tf.reshape(Xnew, [-1, Xnew.shape[-1]])
    real, imaginary = kernel.fourier_covariance(w, rows)
    stacked = _stack(inducing_variable, real, imaginary)
    deviations = tf.sqrt(_variances(inducing_variable, _unscaled_matrix(inducing_variable, kernel)))
    shape = tf.concat([tf.shape(stacked)[:1], tf.shape(Xnew)[:-1]], axis=0)
    return tf.reshape(stacked / deviations[:, None], shape)


@Kuu.register(FourierFeatures, HarmonizableComponent)
@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M, M]",
)
def Kuu_fourier_features(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent, *, jitter: float = 0.0
) -> tf.Tensor:
    """Correlations: the generalized spectral density at w and -w, over standard deviations."""
    matrix = _unscaled_matrix(inducing_variable, kernel)
    inverse = tf.math.rsqrt(_variances(inducing_variable, matrix))
    matrix = inverse[:, None] * matrix * inverse
    diagonal = tf.linalg.diag_part(matrix) + tf.cast(jitter, gpflow.default_float())
    return tf.linalg.set_diag(matrix, diagonal)


def _unscaled_matrix(
    inducing_variable: FourierFeatures, kernel: HarmonizableComponent
) -> tf.Tensor:
    """For s and c the densities at (w, v) and (w, -v): ``Re(s + c) / 2`` between real parts,
    ``Re(s - c) / 2`` between imaginary ones, ``Im(c - s) / 2`` and ``Im(s + c) / 2`` between a real
    and an imaginary one and the other way round."""
    w = inducing_variable.validate_kernel(kernel)
    found = kernel.densities_about_centre(w, w)
    if found.same_imaginary is None or found.opposite_imaginary is None:
        real_imaginary = imaginary_real = tf.zeros_like(found.same)
    else:
        real_imaginary = (found.opposite_imaginary - found.same_imaginary) / 2
        imaginary_real = (found.opposite_imaginary + found.same_imaginary) / 2
    real = tf.concat([(found.same + found.opposite) / 2, real_imaginary], axis=1)
    imaginary = tf.concat([imaginary_real, (found.same - found.opposite) / 2], axis=1)
    rows = _stack(inducing_variable, real, imaginary)
    columns = _stack(inducing_variable, *tf.split(tf.linalg.matrix_transpose(rows), 2, axis=0))
    return (columns + tf.linalg.matrix_transpose(columns)) / 2


def _stack(inducing_variable: FourierFeatures, real: tf.Tensor, imaginary: tf.Tensor) -> tf.Tensor:
    """Rows of real parts and, but for w = 0, of imaginary ones."""
    kept = inducing_variable.with_imaginary_part
    if len(kept) < int(inducing_variable.frequencies.shape[0]):
        imaginary = tf.gather(imaginary, tf.constant(kept, tf.int32))
    return tf.concat([real, imaginary], axis=0)


def _variances(inducing_variable: FourierFeatures, matrix: tf.Tensor) -> tf.Tensor:
    """The diagonal, not below what rounding leaves of it: an imaginary part near w = 0 is the
    difference of two numbers as large as the real part."""
    diagonal = tf.linalg.diag_part(matrix)
    count = int(inducing_variable.frequencies.shape[0])
    total = diagonal[:count]
    kept = tf.constant(inducing_variable.with_imaginary_part, tf.int32)
    precision = np.finfo(diagonal.dtype.as_numpy_dtype)
    floor = precision.eps * tf.concat([total, tf.gather(total, kept)], axis=0)
    return tf.maximum(diagonal, floor + precision.tiny)
