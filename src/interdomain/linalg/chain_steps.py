"""The steps of a block-banded factor and of its inverse, in dense matrices.

Each function takes matrices of g copies, ``[g, M, M]``. A single copy is computed by SciPy's BLAS
and LAPACK in place, which use that matrices are triangular or symmetric. SciPy has threads of its
own, which would wait for those of NumPy. Several copies are computed by NumPy.

BLAS reads a matrix in NumPy's order as its transpose, and a lower half as an upper half.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm, dsymm, dsyrk, dtrmm
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri

from .._arguments import Array
from .stencil_factors import NotFactorised


def eliminate(own: Array, side: Array, inverse: Array | None) -> None:
    """One step of a Cholesky factor, in place.

    :param own: The matrix of the step, whose lower half is read. It becomes ``L^{-1}``, where ``L
        L^T`` is the matrix that is left.
    :param side: The matrix of the step with the step before. It becomes W, with ``W = side
        L_before^{-T}``.
    :param inverse: The result of the step before, ``L_before^{-1}``; None for the first step.
    :raises NotFactorised: If the matrix that is left is not positive definite.
    """
    if len(own) > 1:
        if inverse is not None:
            side[...] = side @ _transposed(inverse)
            own -= side @ _transposed(side)
        try:
            own[...] = np.linalg.inv(np.linalg.cholesky(own))
        except np.linalg.LinAlgError:
            raise NotFactorised from None
        return
    matrix = own[0].T
    if inverse is not None:
        product = dtrmm(1.0, inverse[0].T, side[0].T, trans_a=1, overwrite_b=1)
        matrix = dsyrk(-1.0, product, beta=1.0, c=matrix, trans=1, overwrite_c=1)
    upper, failed = dpotrf(matrix, lower=0, clean=1, overwrite_a=1)
    if failed:
        raise NotFactorised
    _, failed = dtrtri(upper, lower=0, overwrite_c=1)
    if failed:
        raise NotFactorised


def inverse_of_last(inverse: Array) -> Array:
    """``L^{-T} L^{-1}`` for the last step, in its lower half."""
    if len(inverse) > 1:
        return _transposed(inverse) @ inverse
    return np.asarray(dlauum(inverse[0].T, lower=0)[0]).T[None]


def inverse_of_step(inverse: Array, side: Array, after: Array) -> tuple[Array, Array]:
    """The entries of the inverse of a step with itself, in the lower half, and of the next step
    with this step.

    :param inverse: ``L^{-1}`` of this step.
    :param side: W of the next step.
    :param after: The entries of the inverse of the next step with itself, of which the lower half
        is read.
    """
    if len(inverse) > 1:
        solved = side @ inverse
        across = -(after @ solved)
        return _transposed(inverse) @ inverse - _transposed(solved) @ across, across
    own = dlauum(inverse[0].T, lower=0)[0]
    solved = dtrmm(1.0, inverse[0].T, side[0].T)
    across = dsymm(-1.0, after[0].T, solved, side=1)
    own = dgemm(-1.0, solved, across, beta=1.0, c=own, trans_b=1, overwrite_c=1)
    return np.asarray(own).T[None], np.asarray(across).T[None]


def _transposed(matrices: Array) -> Array:
    return matrices.swapaxes(1, 2)


def times(matrices: Array, matrix: Array) -> Array:
    """The products of matrices ``[..., M, K]`` and a matrix ``[K, L]``."""
    flat = matrices.reshape(-1, matrices.shape[-1])
    product = np.asarray(dgemm(1.0, matrix.T, flat.T)).T
    return product.reshape(*matrices.shape[:-1], -1)


def both_sides(matrix: Array, matrices: Array) -> Array:
    """The products ``W G W^T`` of matrices G ``[..., M, M]`` and a matrix W."""
    halves = times(matrices, matrix.T)
    return times(halves.swapaxes(-1, -2), matrix.T).swapaxes(-1, -2)


def sum_of_products(some: Array, others: Array) -> Array:
    """The sum of ``A B^T`` over matrices A and B ``[..., M, K]``, ``[M, M]``."""
    width = some.shape[-2]
    flat = [np.moveaxis(part, -2, 0).reshape(width, -1) for part in (some, others)]
    return np.asarray(dgemm(1.0, flat[1].T, flat[0].T, trans_a=1)).T
