"""How small an eigenvalue of a kernel may be."""

from __future__ import annotations

import numpy as np
import tensorflow as tf


def least_eigenvalue(dtype: tf.DType) -> float:
    """The smallest that Kuu inverts, 1e-15 in float32: the square of its inverse, of which
    gradients are made, is a number. Smaller ones are taken for this one."""
    return float(1e4 * np.sqrt(np.finfo(dtype.as_numpy_dtype).tiny))
