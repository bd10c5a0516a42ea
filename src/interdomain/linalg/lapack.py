"""Factors and inverses of ``I + D G D`` by LAPACK, in place, for a diagonal D.

LAPACK reads an upper triangle U in NumPy's order of entries as the lower triangle of its transpose.
So ``B = U^T U`` is filled, factorised and inverted in one buffer, without a copy. Entries below the
diagonal of U are undefined and not used, except for zeros near the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from .._arguments import Array

_PANEL = 64
"""The rows of a panel: few enough to stay in a cache, and to waste little below the diagonal."""

_ALIGNMENT = 64
"""The alignment in bytes, a power of two. TensorFlow uses an array at such an address without a
copy."""


def factorise(scale: Array, gram: Array, *, backwards: bool = False) -> tuple[Array, int]:
    """The upper triangle U of ``U^T U = I + D G D``.

    :param scale: The diagonal of D, ``[M]``.
    :param gram: A symmetric matrix ``[K, K]``; G is its leading block ``[M, M]``.
    :param backwards: Whether to reverse the order of the rows and columns of ``I + D G D``.
    :returns: U, and 0 or the row (counted from 1) at which the matrix is not positive definite.
    """
    size = len(scale)
    gram = gram[:size, :size]
    if backwards:
        scale, gram = scale[::-1], gram[::-1, ::-1]
    upper = _empty(size)
    for rows, block in _panels(upper):
        np.multiply(gram[rows, rows.start :], scale[rows.start :], out=block)
        block *= scale[rows, None]
        corner = block[:, : len(block)]
        corner[...] = np.triu(corner)
    upper.reshape(-1)[:: size + 1] += 1
    _, failed_at = lapack.dpotrf(upper.T, lower=1, clean=0, overwrite_a=1)
    return upper, int(failed_at)


def solve(upper: Array, columns: Array, *, adjoint: bool = False) -> Array:
    """``U^{-1} columns``, or ``U^{-T} columns``, for columns ``[M, P]``."""
    if not len(upper):  # LAPACK rejects empty matrices
        return columns
    solution, _ = lapack.dtrtrs(upper.T, columns, lower=1, trans=0 if adjoint else 1)
    return np.ascontiguousarray(solution)


def invert(upper: Array) -> None:
    """Replace U by its inverse."""
    if len(upper):
        lapack.dtrtri(upper.T, lower=1, overwrite_c=1)


def multiply_by_adjoint(upper: Array) -> None:
    """Replace U by the upper half of ``U U^T``."""
    if len(upper):
        lapack.dlauum(upper.T, lower=1, overwrite_c=1)


def copied(upper: Array) -> Array:
    """A copy of U."""
    other = _empty(len(upper))
    for rows, block in _panels(other):
        block[...] = upper[rows, rows.start :]
    return other


def square_lengths(upper: Array) -> Array:
    """The diagonal of ``U U^T``."""
    lengths = [np.einsum("ij,ij->i", block, block) for _, block in _panels(upper)]
    return np.concatenate([np.zeros(0), *lengths])


def turned(upper: Array) -> Array:
    """U with its rows and columns in reversed order: a lower triangle, zero above the diagonal."""
    size = len(upper)
    lower = _empty(size)
    lower.fill(0)
    for rows, block in _panels(upper):
        lower[size - rows.stop : size - rows.start, : size - rows.start] = block[::-1, ::-1]
    return lower


def mirrored(upper: Array, size: int) -> Array:
    """The symmetric matrix whose upper half is U, padded with zeros to ``[size, size]``."""
    matrix = _empty(size)
    matrix[len(upper) :] = 0
    matrix[:, len(upper) :] = 0
    for rows, block in _panels(upper):
        length = rows.stop - rows.start
        matrix[rows, rows.start : len(upper)] = block
        matrix[rows.stop : len(upper), rows] = block[:, length:].T
        corner = np.triu(block[:, :length])
        matrix[rows, rows] = corner + np.triu(corner, 1).T
    return matrix


def _panels(upper: Array) -> Iterator[tuple[slice, Array]]:
    """The slice of rows of each panel, and these rows from the diagonal on."""
    size = len(upper)
    for start in range(0, size, _PANEL):
        rows = slice(start, min(start + _PANEL, size))
        yield rows, upper[rows, start:]


def _empty(size: int) -> Array:
    """An array ``[size, size]`` of aligned memory, without values."""
    spare = _ALIGNMENT // 8
    buffer = np.empty(size * size + spare)
    start = (-buffer.ctypes.data % _ALIGNMENT) // 8
    return buffer[start : start + size * size].reshape(size, size)
