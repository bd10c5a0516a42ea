"""Factors of sparse matrices on a grid, in NumPy arrays: the protocol, and LAPACK's banded factor.

A matrix is a stencil: see :mod:`interdomain.linalg.banded`.
"""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
import tensorflow as tf
from scipy.linalg import cholesky_banded
from scipy.linalg.lapack import dtbtrs

from .._arguments import Array
from .banded import inverse_and_log_determinant
from .operators import Factor


class NotFactorised(Exception):
    """The error that a matrix is not positive definite in float64."""


class StencilFactor(Factor):
    """The factor of a sparse matrix on a grid, in NumPy arrays."""

    @abc.abstractmethod
    def inverse_band(self) -> Array:
        """The entries of the inverse within the stencil of the matrix, as a stencil."""

    def inverse_diagonal(self) -> Array:
        return stencil_diagonal(self.inverse_band())


def stencil_diagonal(stencil: Array) -> Array:
    """The diagonal ``[M]`` of the matrix of a grid's stencil."""
    centre: Any = (..., *[size // 2 for size in stencil.shape[stencil.ndim // 2 :]])
    return np.ravel(stencil[centre])


class BandedFactor(StencilFactor):
    """The Cholesky factor of one banded matrix, by LAPACK.

    :param stencil: ``[M, 2p + 1]``.
    :raises NotFactorised: If the matrix is not positive definite.
    """

    def __init__(self, stencil: Array) -> None:
        self._stencil, reach = stencil, stencil.shape[1] // 2
        self.size = len(stencil)
        # LAPACK stores the bands of the lower triangle as rows, each from its first entry on.
        rows = [np.pad(stencil[k:, reach - k], (0, k)) for k in range(reach + 1)]
        try:
            self._bands = cholesky_banded(np.stack(rows), lower=True)
        except np.linalg.LinAlgError:
            raise NotFactorised from None

    def log_determinant(self) -> float:
        return float(np.sum(np.log(self._bands[0])))

    def solve(self, columns: Array, *, adjoint: bool = False) -> Array:
        if not columns.size:
            return columns  # LAPACK rejects empty arrays
        transposed = "T" if adjoint else "N"
        solved: Array = dtbtrs(self._bands, columns, uplo="L", trans=transposed)[0]
        return solved

    def inverse_band(self) -> Array:
        inverse: Array = inverse_and_log_determinant(tf.constant(self._stencil))[0].numpy()
        return inverse
