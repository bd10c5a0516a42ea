"""Which columns of X a kernel sees."""

from __future__ import annotations

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel


def num_active_dims(kernel: Kernel) -> int | None:
    """The number of columns that ``active_dims`` selects; None if it depends on X."""
    if not isinstance(kernel.active_dims, slice):
        return len(kernel.active_dims)
    stop = kernel.active_dims.stop
    if stop is None or stop < 0:
        return None
    return len(range(*kernel.active_dims.indices(stop)))


def select_columns(kernel: Kernel, X: TensorType) -> tf.Tensor:
    """The active columns of X, whether or not they have been selected already.

    ``kernel(X)`` selects them and then calls ``K`` or ``K_diag``. But GPflow's ``Sum.K``, its
    posteriors for several outputs and its CGLB call these directly, with all columns. The two are
    told apart by the number of columns.
    """
    X = tf.convert_to_tensor(X)
    if X.shape[-1] is None or num_active_dims(kernel) in (None, X.shape[-1]):
        return X
    return kernel.slice(X, None)[0]
