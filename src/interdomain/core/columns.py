"""Columns of X that a kernel uses, their number before X is known, and checks of X."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array, IntArray, check_squares, refusal, short
from .._tracing import unconverted

_MOST_COLUMNS_OF_X = 10_000

Method = TypeVar("Method", bound=Callable[..., tf.Tensor])


def num_columns(kernel: Kernel, num_seen: int | None) -> int | None:
    """The number of columns of X for a kernel that uses ``num_seen`` columns. None if the kernel
    selects columns, because X may then have any number of other columns."""
    dims = kernel.active_dims
    return num_seen if isinstance(dims, slice) and dims == slice(None) else None


def seen_columns(kernel: Kernel, num_seen: int) -> IntArray | None:
    """The columns of X that a kernel uses, ``[num_seen]``; None if they depend on X."""
    dims = kernel.active_dims
    if isinstance(dims, slice):
        if min(dims.start or 0, dims.stop or 0) < 0 or (dims.step or 1) < 0:
            return None
        dims = np.arange(dims.stop or _MOST_COLUMNS_OF_X)[dims][:num_seen]
    return np.asarray(dims)


def select_columns(kernel: Kernel, X: TensorType) -> tf.Tensor:
    """The active columns of X, if X has all columns.

    Do not call it twice: ``active_dims`` may permute all columns, and then nothing shows that the
    columns were selected already. GPflow's ``Kernel.__call__`` selects them before it calls ``K``
    and ``K_diag``. Its ``Sum.K``, its posteriors for several outputs and its CGLB call both with
    all columns. A kernel whose ``K`` selects the columns is a :class:`WholeRows`.

    :raises ValueError: If X is known to lack some of the columns.
    """
    X, dims = tf.convert_to_tensor(X), kernel.active_dims
    if isinstance(dims, slice):
        count, wider_count = (len(range(*dims.indices(k * _MOST_COLUMNS_OF_X))) for k in (1, 2))
        return with_columns(kernel.slice(X, None)[0], count if count == wider_count else None)
    found, needed = X.shape[-1], int(np.max(dims, initial=-1)) + 1
    if found is not None and found < needed:  # a GPU would return zeros for missing columns
        raise ValueError(
            f"X must have {needed} or more columns for active_dims {short(dims)} of "
            f"{type(kernel).__name__}, found {found}; pass X with all columns."
        )
    return kernel.slice(X, None)[0]


def kernel_method(method: Method) -> Method:
    """A decorator for ``K`` or ``K_diag`` of a kernel: shapes are checked as for GPflow's method,
    and AutoGraph leaves the method unchanged."""
    return inherit_check_shapes(unconverted(method))


class WholeRows(Kernel, metaclass=abc.ABCMeta):
    """A kernel whose ``K`` and ``K_diag`` accept X with all columns and select the active ones."""

    @unconverted
    def __call__(
        self,
        X: TensorType,
        X2: TensorType | None = None,
        *,
        full_cov: bool = True,
        presliced: bool = False,
    ) -> tf.Tensor:
        """The covariances; ``K`` and ``K_diag`` are called with all columns of X.

        :param presliced: Whether X and X2 have only the active columns, in the kernel's order.
        """
        if presliced:
            X, X2 = (None if rows is None else _whole_rows(self, rows) for rows in (X, X2))
        return super().__call__(X, X2, full_cov=full_cov, presliced=True)

    def seen(self, X: TensorType) -> tf.Tensor:
        """The active columns of X, ``[..., N, D]``."""
        return select_columns(self, X)


def _whole_rows(kernel: Kernel, X: TensorType) -> tf.Tensor:
    """Rows whose active columns are X; their other columns are copies of the first column of X."""
    X, dims = tf.convert_to_tensor(X), kernel.active_dims
    if isinstance(dims, slice):
        if dims == slice(None):
            return X
        widths: Sequence[int] = range(_MOST_COLUMNS_OF_X)  # the first width that fits is used
    else:
        X, widths = with_columns(X, len(dims)), [int(np.max(dims, initial=-1)) + 1]
    for width in widths:
        selected = np.arange(width)[dims]
        if len(selected) == X.shape[-1]:
            places = np.zeros(width, np.int64)
            places[selected] = np.arange(len(selected))
            return tf.gather(X, places, axis=-1)
    remedy = "pass X with all columns, without presliced"
    rule = f"have the columns that active_dims {short(dims)} select alone where presliced is True"
    raise refusal("X", rule, X.shape[-1], remedy)


def checked_columns(X: TensorType, num_columns: int | None, why: str, remedy: str) -> tf.Tensor:
    """X, checked to have ``num_columns`` columns (None for any number), possibly in the graph.

    :param why: Why X must have this number; the message has it after the word "columns".
    :raises ValueError: If X has another number of columns.
    """
    X = with_columns(X, num_columns)
    if num_columns is not None and X.shape[-1] not in (None, num_columns):
        raise ValueError(f"X must have {num_columns} columns{why}, found {X.shape[-1]}; {remedy}.")
    return X


def as_in_training(X: TensorType, num_columns: int) -> tf.Tensor:
    """Rows X to predict, checked to have the columns of the training rows."""
    remedy = "pass new rows with the same columns"
    return checked_columns(X, num_columns, ", as the training rows", remedy)


def with_columns(X: TensorType, num_columns: int | None) -> tf.Tensor:
    """X with ``num_columns`` (None if unknown) in its static shape, if its number of columns is not
    static yet. The graph raises an InvalidArgumentError if X has another number when it runs."""
    X = tf.convert_to_tensor(X)
    if num_columns is None or X.shape.rank is None or X.shape[-1] is not None:
        return X
    return tf.ensure_shape(X, [*X.shape[:-1], num_columns])


def as_rows(X: TensorType, num_columns: int | None = None) -> tf.Tensor:
    """X ``[batch..., N, D]`` as ``[batch N, D]``, of known rank. ``num_columns`` is D; it is used
    if X has no static number of columns."""
    X = tf.convert_to_tensor(X)
    if X.shape.rank != 2:
        # A reshape to num_columns would mix up rows if X had another number of columns.
        X = tf.reshape(X, [-1, tf.shape(X)[-1] if X.shape[-1] is None else X.shape[-1]])
    return with_columns(X, num_columns)


def scaled_parts(kernel: Kernel) -> list[Kernel]:
    """The parts of a kernel that divide columns of X by a lengthscale: its stationary kernels, or
    the kernels that its own method ``scaled_parts`` returns."""
    if hasattr(kernel, "scaled_parts"):
        return list(kernel.scaled_parts())
    if isinstance(kernel, Stationary):
        return [kernel]
    inner: Sequence[Kernel] = kernel.kernels if isinstance(kernel, Combination) else ()
    if isinstance(kernel, MultioutputKernel):
        inner = kernel.latent_kernels
    return [part for summand in inner for part in scaled_parts(summand)]


def validate_rows(name: str, kernel: Kernel, X: Array) -> None:
    """Check that rows ``[..., D]`` can be inputs of the kernel; a ValueError otherwise."""
    check_squares(name, X, gpflow.default_float())
    for part in scaled_parts(kernel):
        if hasattr(part, "validate_rows"):
            part.validate_rows(name, X)


def parts_that_warn(kernel: Kernel | None) -> list[Any]:
    """The parts of a kernel with a method ``warn_of_rows(X)``, such as kernels of groups. The
    method warns of rows without data, which a graph cannot do, and returns whether it warned."""
    parts = () if not isinstance(kernel, Kernel) else (kernel, *kernel.submodules)
    return [part for part in parts if hasattr(part, "warn_of_rows")]
