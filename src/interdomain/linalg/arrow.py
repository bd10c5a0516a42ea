"""The precision of the weights of splines on a grid, bordered by that of a few dense features.

    P = [[A, C], [C^T, D]],    A being a stencil (:mod:`interdomain.linalg.dissection`).

With ``T = A^{-1} C`` and the Schur complement ``S = D - C^T T``, its inverse is

    [[A^{-1} + T S^{-1} T^T, -T S^{-1}], [-S^{-1} T^T, S^{-1}]],

of which only the entries that P has are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.linalg import cho_solve, cholesky, solve_triangular

from .._arguments import Array
from .._tracing import numpy_function
from .banded import NotFactorised
from .dissection import Dissection
from .precision import checked

NOT_FACTORISED = (
    "Cholesky decomposition was not successful: Kuu + Kuf Kfu / s, s being the noise variance, is "
    "not positive definite in float64; the splines are too narrow for such long lengthscales, or s "
    "is too small."
)


class Arrow(NamedTuple):
    """A symmetric matrix ``[M + B, M + B]`` of M splines and B other features.

    :ivar stencil: A, ``[M_1, ..., 2p + 1]``.
    :ivar border: C, ``[M, B]``.
    :ivar corner: D, ``[B, B]``.
    """

    stencil: Any
    border: Any
    corner: Any

    @classmethod
    def without_border(cls, stencil: Array, corner: Array) -> Arrow:
        """Of splines and features that have nothing to do with each other."""
        nodes = stencil.shape[: stencil.ndim // 2]
        return cls(stencil, np.zeros([int(np.prod(nodes)), len(corner)]), corner)

    def packed(self) -> Array:
        """All numbers as one vector."""
        return np.concatenate([np.ravel(part) for part in self])

    def plus(self, other: Arrow, factor: float | Array = 1.0) -> Arrow:
        """The matrix and another, times a factor."""
        return Arrow(*(a + factor * b for a, b in zip(self, other, strict=True)))


class ArrowFactor:
    """The factor of an arrow.

    :raises NotFactorised: If it is not positive definite.
    """

    def __init__(self, order: Dissection, arrow: Arrow) -> None:
        self._order, self._sparse = order, order.factorise(arrow.stencil)
        half = self._sparse.half_solve(arrow.border)
        self._solved = self._sparse.half_solve_adjoint(half)
        try:
            self._triangle = cholesky(arrow.corner - half.T @ half, lower=True)
        except (np.linalg.LinAlgError, ValueError):  # SciPy raises the latter for NaN
            raise NotFactorised from None

    def log_determinant(self) -> float:
        """``log det P``."""
        of_corner = float(np.sum(np.log(np.diagonal(self._triangle))))
        return self._sparse.log_determinant() + 2 * of_corner

    def half_solve(self, columns: Array) -> Array:
        """``L^{-1} columns``, for ``P = L L^T`` and columns ``[M + B, K]``."""
        splines, others = np.split(columns, [self._order.size])
        others = solve_triangular(self._triangle, others - self._solved.T @ splines, lower=True)
        return np.concatenate([self._sparse.half_solve(splines), others])

    def half_solve_adjoint(self, columns: Array) -> Array:
        """``L^{-T} columns``."""
        splines, others = np.split(columns, [self._order.size])
        others = solve_triangular(self._triangle, others, lower=True, trans="T")
        splines = self._sparse.half_solve_adjoint(splines) - self._solved @ others
        return np.concatenate([splines, others])

    def solve(self, columns: Array) -> Array:
        """``P^{-1} columns``."""
        return self.half_solve_adjoint(self.half_solve(columns))

    def inverse(self) -> Arrow:
        """The entries of ``P^{-1}`` that P has."""
        corner = cho_solve((self._triangle, True), np.eye(len(self._triangle)))
        border = -self._solved @ corner
        stencil = self._sparse.inverse() - self._order.products(self._solved, border)
        return Arrow(stencil, border, corner)


def factorised(order: Dissection, arrow: Arrow) -> ArrowFactor:
    """
    :raises tf.errors.InvalidArgumentError: If it is not positive definite.
    """
    try:
        return ArrowFactor(order, arrow)
    except NotFactorised:
        raise tf.errors.InvalidArgumentError(None, None, NOT_FACTORISED) from None


def arrow_terms(
    order: Dissection,
    prior: Sequence[tf.Tensor],
    gram: Arrow,
    columns: tf.Tensor,
    noise_variance: tf.Tensor,
    *,
    refuse: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """``log det P`` and ``|P^{-1/2} columns / s|^2`` for ``P = K + G / s``, all in float64.

    They can be differentiated once, by all but G. Gradients are computed with the values: the
    entries of ``P^{-1}`` are those of the determinant, and no more is needed.

    :param prior: Stencil and corner of K, which has no border.
    :param gram: G.
    :param columns: ``[M + B, K]``.
    :param noise_variance: s, ``[]``.
    :param refuse: Whether a finite P that cannot be factorised is an error; both terms are NaN
        otherwise.
    :raises tf.errors.InvalidArgumentError: If P cannot be factorised. If it is not finite, both
        terms are NaN.
    """
    inputs = (*prior, columns, noise_variance)

    def compute(*arrays: Array) -> list[Array]:
        return _terms(order, *arrays)

    @tf.custom_gradient
    def terms(*inputs: tf.Tensor) -> Any:
        types = [tf.float64] * 11
        found = numpy_function(compute, [*inputs, *gram], types, stateful=False)
        ok, log_determinant, fit, *gradients = found
        values, shapes = [log_determinant, fit], [(), ()]
        log_determinant, fit = checked(ok, values, shapes, NOT_FACTORISED if refuse else None)
        of_inputs = [part.shape for part in inputs]

        def gradient(of_determinant: tf.Tensor, of_fit: tf.Tensor) -> list[tf.Tensor]:
            pairs = zip(gradients[:4], gradients[4:], strict=True)
            totals = [of_determinant * a + of_fit * b for a, b in pairs]
            return [tf.ensure_shape(g, shape) for g, shape in zip(totals, of_inputs, strict=True)]

        return (log_determinant, fit), gradient

    log_determinant, fit = terms(*inputs)
    return log_determinant, fit


def _terms(
    order: Dissection,
    stencil: Array,
    corner: Array,
    columns: Array,
    noise: Array,
    *gram: Array,
) -> list[Array]:
    """Whether P is as it should be (1.0, or 0.0 if it is finite and cannot be factorised), the two
    terms, and the gradients of each by stencil, corner, columns and noise variance."""
    with np.errstate(all="ignore"):
        posterior = Arrow.without_border(stencil, corner).plus(Arrow(*gram), 1 / noise)
    finite = all(np.all(np.isfinite(part)) for part in (*posterior, columns))
    try:
        factor = ArrowFactor(order, posterior) if finite else None
    except NotFactorised:
        factor = None
    if factor is None:
        nan = [np.full_like(part, np.nan) for part in (stencil, corner, columns, noise)]
        return [np.array(0.0 if finite else 1.0), *[np.array(np.nan)] * 2, *nan, *nan]
    solved = factor.solve(columns / noise)
    inverse, others = factor.inverse(), solved[order.size :]
    products = -order.products(solved[: order.size], solved[: order.size])
    of_others = -others @ others.T
    fit = np.sum(columns * solved) / noise
    traces = [
        np.sum(of_stencil * stencil) + np.sum(of_corner * corner)
        for of_stencil, of_corner in ((inverse.stencil, inverse.corner), (products, of_others))
    ]
    size = order.size + len(corner)
    return [
        np.array(1.0),
        np.array(factor.log_determinant()),
        fit,
        inverse.stencil,
        inverse.corner,
        np.zeros_like(columns),
        (traces[0] - size) / noise,
        products,
        of_others,
        2 * solved / noise,
        (traces[1] - fit) / noise,
    ]
