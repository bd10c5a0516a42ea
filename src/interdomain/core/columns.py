"""Which columns of X a kernel sees, how many where a graph is built before X is known, and what it
expects of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array, IntArray, check_squares

_MOST_COLUMNS_OF_X = 10_000


def num_columns(kernel: Kernel, num_seen: int | None) -> int | None:
    """The number of columns of X for a kernel that sees so many; None if it selects some of them,
    as X may then have any number of others."""
    dims = kernel.active_dims
    return num_seen if isinstance(dims, slice) and dims == slice(None) else None


def seen_columns(kernel: Kernel, num_seen: int) -> IntArray | None:
    """The columns of X that a kernel sees, ``[num_seen]``; None if they depend on X."""
    dims = kernel.active_dims
    if isinstance(dims, slice):
        if min(dims.start or 0, dims.stop or 0) < 0:
            return None
        dims = np.arange(dims.stop or _MOST_COLUMNS_OF_X)[dims][:num_seen]
    return np.asarray(dims)


def select_columns(kernel: Kernel, X: TensorType) -> tf.Tensor:
    """The active columns of X, whether or not they have been selected already.

    ``kernel(X)`` selects them and then calls ``K`` or ``K_diag``. But GPflow's ``Sum.K``, its
    posteriors for several outputs and its CGLB call these directly, with all columns. The two are
    told apart by the number of columns.
    """
    X = tf.convert_to_tensor(X)
    dims = kernel.active_dims
    if isinstance(dims, slice):
        if dims.stop is None or dims.stop < 0:  # how many it selects depends on X
            return X
        dims = np.arange(dims.stop)[dims]
    num_active = len(dims)
    if X.shape[-1] == num_active:
        return X
    if X.shape[-1] is not None:
        return kernel.slice(X, None)[0]
    # Told apart when the graph runs; what is gathered has a known number of columns.
    places = tf.where(tf.shape(X)[-1] == num_active, np.arange(num_active), np.asarray(dims))
    return tf.gather(X, places, axis=-1)


def of_columns(X: TensorType, num_columns: int | None, why: str, remedy: str) -> tf.Tensor:
    """X, if it has so many columns; they may be known only when a graph runs.

    :param num_columns: None for any number.
    :param why: Why it has to have so many, in the words that follow "columns".
    :raises ValueError: If they are more or fewer.
    """
    X = with_columns(X, num_columns)
    if num_columns is not None and X.shape[-1] not in (None, num_columns):
        raise ValueError(f"X must have {num_columns} columns{why}, found {X.shape[-1]}; {remedy}.")
    return X


def with_columns(X: TensorType, num_columns: int | None) -> tf.Tensor:
    """X with this number of columns in its static shape, if X has none there.

    The graph fails with an InvalidArgumentError when it is given another number.

    :param num_columns: None if it is not known, which leaves X as it is.
    """
    X = tf.convert_to_tensor(X)
    if num_columns is None or X.shape.rank is None or X.shape[-1] is not None:
        return X
    return tf.ensure_shape(X, [*X.shape[:-1], num_columns])


def as_rows(X: TensorType, num_columns: int | None = None) -> tf.Tensor:
    """X ``[batch..., N, D]`` as ``[batch N, D]``, of known rank.

    :param num_columns: D, for an X without a static number of columns.
    """
    X = tf.convert_to_tensor(X)
    if X.shape.rank != 2:
        # Not num_columns: other rows of another number of columns would come out of it.
        X = tf.reshape(X, [-1, tf.shape(X)[-1] if X.shape[-1] is None else X.shape[-1]])
    return with_columns(X, num_columns)


def scaled_parts(kernel: Kernel) -> list[Kernel]:
    """The kernels that compare columns of X with a length of which a kernel is made: stationary
    ones, and those that a method of this name returns."""
    if hasattr(kernel, "scaled_parts"):
        return list(kernel.scaled_parts())
    if isinstance(kernel, Stationary):
        return [kernel]
    inner: Sequence[Kernel] = kernel.kernels if isinstance(kernel, Combination) else ()
    if isinstance(kernel, MultioutputKernel):
        inner = kernel.latent_kernels
    return [part for summand in inner for part in scaled_parts(summand)]


def validate_rows(name: str, kernel: Kernel, X: Array) -> None:
    """:raises ValueError: For rows ``[..., D]`` that cannot be inputs of the kernel."""
    check_squares(name, X, gpflow.default_float())
    for part in scaled_parts(kernel):
        if hasattr(part, "validate_rows"):
            part.validate_rows(name, X)


def parts_that_warn(kernel: Kernel | None) -> list[Any]:
    """The parts of a kernel that warn of rows which they know nothing of, by a method
    ``warn_of_rows(X)`` that says whether it did: graphs cannot warn."""
    parts = () if not isinstance(kernel, Kernel) else (kernel, *kernel.submodules)
    return [part for part in parts if hasattr(part, "warn_of_rows")]
