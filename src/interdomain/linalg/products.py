"""Products of matrices."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def matmul(
    a: tf.Tensor, b: tf.Tensor, *, transpose_a: bool = False, transpose_b: bool = False
) -> tf.Tensor:
    """``tf.matmul``; batches of one are multiplied as what they are, which is faster."""
    leading = a.shape[:-2]
    if leading.rank and leading == b.shape[:-2] and leading.num_elements() == 1:
        index = (0,) * leading.rank
        product = tf.matmul(a[index], b[index], transpose_a=transpose_a, transpose_b=transpose_b)
        return product[(None,) * leading.rank]
    return tf.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@tf.custom_gradient
def gram(matrix: tf.Tensor) -> Any:
    """``B^T B``, with one product in its gradient where TensorFlow's own has two."""

    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return matmul(matrix, upstream + tf.linalg.matrix_transpose(upstream))

    return matmul(matrix, matrix, transpose_a=True), gradient
