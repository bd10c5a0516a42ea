"""Checks of the arguments of spectral kernels."""

from __future__ import annotations

import numpy as np
from gpflow.base import TensorType

from ..._arguments import complex_array, finite_array, integer
from ...sphere._typing import Array


def validate_definite(name: str, value: TensorType, dimension: int) -> Array:
    """A positive-definite matrix in one of its three forms.

    :raises ValueError: If it has another shape, or is not symmetric positive-definite.
    """
    form = f"a number, [{dimension}] or [{dimension}, {dimension}]"
    array = finite_array(name, value, (0, 1, 2), form)
    if any(size != dimension for size in array.shape):
        raise ValueError(f"{name} must be {form}, found shape {array.shape}; pass one of these.")
    is_matrix = array.ndim == 2
    if is_matrix and not np.allclose(array, array.T, rtol=1e-10, atol=0):
        raise ValueError(f"{name} must be symmetric, found {array}; pass (A + A.T) / 2.")
    smallest = np.min(np.linalg.eigvalsh(array) if is_matrix else array)
    if not smallest > 0:
        what = "a smallest eigenvalue of " if is_matrix else ""
        remedy = "A A^T of an invertible A" if is_matrix else "positive numbers"
        raise ValueError(
            f"{name} must be positive definite, found {what}{smallest:.3g}; pass {remedy}."
        )
    return array


def as_matrix(value: Array, dimension: int) -> Array:
    """The matrix that a number, a diagonal or a matrix stands for."""
    return value if value.ndim == 2 else value * np.eye(dimension)


def per_column(name: str, value: TensorType, dimension: int) -> Array:
    """:raises ValueError: If it is neither a number nor one for each column."""
    array = finite_array(name, value, (0, 1), f"a number or [{dimension}]")
    if array.ndim and len(array) != dimension:
        raise ValueError(
            f"{name} must have {dimension} entries, found {len(array)}; pass one for each column, "
            "or a number."
        )
    return np.broadcast_to(array, [dimension]).copy()


def excess_of_lag(envelope: Array, lag: Array, dimension: int) -> Array:
    """``lag - envelope / 4``, in the richer form of the two.

    :raises ValueError: If it is not positive definite.
    """
    if max(envelope.ndim, lag.ndim) == 2:
        envelope, lag = as_matrix(envelope, dimension), as_matrix(lag, dimension)
    excess: Array = np.asarray(lag - envelope / 4)
    smallest = np.min(np.linalg.eigvalsh(excess) if excess.ndim == 2 else excess)
    if not smallest > 0:
        raise ValueError(
            "lag must be above envelope / 4, as the kernel is not valid otherwise: lag - envelope "
            "/ 4 must be positive definite, found a smallest eigenvalue of "
            f"{smallest:.3g}; pass a larger lag or a smaller envelope."
        )
    return excess


def root_of_amplitudes(amplitudes: TensorType | None, count: int, rank: int | None) -> Array:
    """W ``[Q, R]`` with ``B = W W^H``.

    :raises ValueError: If B has a wrong shape, is not finite, Hermitian and positive
        semi-definite, or has a higher rank than asked for.
    """
    if rank is not None:
        rank = integer("rank", rank, at_least=1, at_most=count)
    if amplitudes is None:
        return _default_root(count, count if rank is None else rank)
    form = f"[{count}] or [{count}, {count}]"
    matrix = complex_array("amplitudes", amplitudes, form)
    if matrix.shape not in ((count,), (count, count)):
        raise ValueError(
            f"amplitudes must be {form}, one row for each frequency, found shape {matrix.shape}; "
            "pass a variance for each frequency, or a matrix."
        )
    if matrix.ndim == 1:
        matrix = np.diag(matrix)
    if not np.all(np.isfinite(matrix)):
        raise ValueError("amplitudes must be finite, found NaN or infinity; pass finite numbers.")
    if not np.allclose(matrix, matrix.conj().T, rtol=1e-10, atol=1e-12 * np.max(np.abs(matrix))):
        raise ValueError(
            "amplitudes must be Hermitian, found a matrix that is not its conjugate transpose; "
            "pass for example W W^H for any matrix W."
        )
    values, vectors = np.linalg.eigh(matrix)
    threshold = 1e-10 * max(np.max(np.abs(values)), np.finfo(float).tiny)
    if values[0] < -threshold or not values[-1] > 0:
        raise ValueError(
            "amplitudes must be positive semi-definite and not zero, found eigenvalues "
            f"{values}; pass for example W W^H for any matrix W."
        )
    kept = count if rank is None else rank
    if np.sum(values > threshold) > kept:
        raise ValueError(
            f"amplitudes must have a rank of at most rank={kept}, found "
            f"{np.sum(values > threshold)}; pass amplitudes of that rank, for example W W^H for W "
            "of that many columns."
        )
    order = np.argsort(values)[::-1][:kept]
    root: Array = vectors[:, order] * np.sqrt(np.maximum(values[order], 0))
    return root


def _default_root(count: int, rank: int) -> Array:
    """Every frequency in one column, with a variance of one at the centre in all."""
    columns = np.arange(count) % rank
    root = np.zeros([count, rank])
    root[np.arange(count), columns] = 1 / np.bincount(columns)[columns] / np.sqrt(rank)
    return root
