"""The precision matrix of the weights of splines on a grid and of a few dense features.

    P = [[A, C], [C^T, D]],    where A is a stencil (:mod:`interdomain.linalg.dissection`).

With ``T = A^{-1} C`` and the Schur complement ``S = D - C^T T``, the inverse of P is

    [[A^{-1} + T S^{-1} T^T, -T S^{-1}], [-S^{-1} T^T, S^{-1}]].

Only the entries of the inverse at the places of P's entries are computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from scipy.linalg import cho_solve, cholesky, solve_triangular

from .._arguments import Array
from .._tracing import numpy_function
from .dissection import Dissection, dissection
from .operators import Factor, Summable
from .precision import checked
from .stencil_factors import NotFactorised, stencil_diagonal

NOT_FACTORISED = (
    "Cholesky decomposition was not successful: Kuu + Kuf Kfu / s, s being the noise variance, is "
    "not positive definite in float64; the splines are too narrow for such long lengthscales, or s "
    "is too small."
)


@dataclass(frozen=True, eq=False)
class Arrow(Summable):
    """A symmetric matrix ``[M + B, M + B]`` of M splines and B other features.

    The parts are arrays or tensors. Products, factors and dense matrices are computed outside of
    graphs.

    :ivar stencil: A, ``[M_1, ..., 2p + 1]``.
    :ivar border: C, ``[M, B]``.
    :ivar corner: D, ``[B, B]``.
    """

    stencil: Any
    border: Any
    corner: Any

    @classmethod
    def without_border(cls, stencil: Array, corner: Array | None = None) -> Arrow:
        """The matrix whose border C is zero; without ``corner``, the matrix of splines alone."""
        nodes = stencil.shape[: len(stencil.shape) // 2]
        corner = np.zeros([0, 0]) if corner is None else corner
        return cls(stencil, np.zeros([int(np.prod(nodes)), len(corner)]), corner)

    @classmethod
    def zeros(cls, stencil_shape: Sequence[int], num_others: int) -> Arrow:
        """The sum over no rows: broadcast zeros, which take no memory.

        :param stencil_shape: ``(M_1, ..., 2p + 1)``.
        :param num_others: B.
        """
        size = int(np.prod(stencil_shape[: len(stencil_shape) // 2]))
        shapes = stencil_shape, (size, num_others), (num_others, num_others)
        return cls(*(np.broadcast_to(0.0, shape) for shape in shapes))

    @property
    def parts(self) -> tuple[Any, ...]:
        return self.stencil, self.border, self.corner

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def with_parts(self, stencil: Any, border: Any, corner: Any) -> Arrow:
        return Arrow(stencil, border, corner)

    @property
    def order(self) -> Dissection:
        """The order in which the splines are eliminated."""
        shape = self.stencil.shape
        return dissection(tuple(shape[: len(shape) // 2]), shape[-1] // 2)

    def matmul(self, columns: Array) -> Array:
        stencil, border, corner = map(np.asarray, self.parts)
        splines, others = np.split(columns, [len(border)])
        spline_products = self.order.sparse(stencil) @ splines + border @ others
        return np.concatenate([spline_products, border.T @ splines + corner @ others])

    def to_dense(self) -> Array:
        stencil, border, corner = map(np.asarray, self.parts)
        return np.block([[self.order.dense(stencil), border], [border.T, corner]])

    def diag_part(self) -> Array:
        stencil, corner = np.asarray(self.stencil), np.diagonal(self.corner)
        return np.concatenate([stencil_diagonal(stencil), corner])

    def root(self) -> ArrowFactor:
        return _factor(self.order, self)


class ArrowFactor(Factor):
    """The factor L of an arrow ``P = L L^T``.

    :raises NotFactorised: If the arrow is not positive definite.
    """

    def __init__(self, order: Dissection, arrow: Arrow) -> None:
        stencil, border, corner = map(np.asarray, arrow)
        self._order, self._sparse = order, order.factorise(stencil)
        self.size = order.size + len(corner)
        half = self._sparse.solve(border)
        self._solved = self._sparse.solve(half, adjoint=True)
        try:
            self._triangle = cholesky(corner - half.T @ half, lower=True)
        except (np.linalg.LinAlgError, ValueError):  # SciPy raises ValueError for NaN
            raise NotFactorised from None

    def log_determinant(self) -> float:
        corner_log = np.sum(np.log(np.diagonal(self._triangle)))
        return float(self._sparse.log_determinant() + corner_log)

    def solve(self, columns: Array, *, adjoint: bool = False) -> Array:
        splines, others = np.split(columns, [self._order.size])
        if adjoint:
            others = solve_triangular(self._triangle, others, lower=True, trans="T")
            splines = self._sparse.solve(splines, adjoint=True) - self._solved @ others
        else:
            rest = others - self._solved.T @ splines
            others = solve_triangular(self._triangle, rest, lower=True)
            splines = self._sparse.solve(splines)
        return np.concatenate([splines, others])

    def inverse_band(self) -> Arrow:
        """The entries of the inverse at the places of the arrow's entries."""
        corner = cho_solve((self._triangle, True), np.eye(len(self._triangle)))
        border = -self._solved @ corner
        stencil = self._sparse.inverse_band() - self._order.products(self._solved, border)
        return Arrow(stencil, border, corner)

    def inverse_diagonal(self) -> Array:
        return self.inverse_band().diag_part()


def _factor(order: Dissection, arrow: Arrow) -> ArrowFactor:
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
    gram_gradient: bool = False,
    refuse: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """``log det P`` and ``|P^{-1/2} columns / s|^2`` for ``P = K + G / s``, all in float64.

    Both terms have first derivatives. The gradients are computed with the values. They need only
    the entries of ``P^{-1}`` at the places of P's entries.

    :param prior: The stencil and the corner of K, whose border is zero.
    :param gram: G.
    :param columns: ``[M + B, K]``.
    :param noise_variance: s, ``[]``.
    :param gram_gradient: Whether the terms have derivatives with respect to G.
    :param refuse: Whether a finite P without a factor is an error; if False, both terms are NaN.
    :raises tf.errors.InvalidArgumentError: If P is finite and cannot be factorised. If P is not
        finite, both terms are NaN.
    """
    inputs = (*prior, columns, noise_variance, *(gram if gram_gradient else ()))

    def compute(*arrays: Array) -> list[Array]:
        return _terms(order, *arrays, with_border=gram_gradient)

    @tf.custom_gradient
    def terms(*inputs: tf.Tensor) -> Any:
        types = [tf.float64] * (13 if gram_gradient else 11)
        found = numpy_function(compute, [*inputs[:4], *gram], types, stateful=False)
        ok, log_determinant, fit, *gradients = found
        values, shapes = [log_determinant, fit], [(), ()]
        log_determinant, fit = checked(ok, values, shapes, NOT_FACTORISED if refuse else None)
        sizes = [part.shape for part in inputs]

        def gradient(to_determinant: tf.Tensor, to_fit: tf.Tensor) -> list[tf.Tensor]:
            half = len(gradients) // 2
            pairs = zip(gradients[:half], gradients[half:], strict=True)
            totals = [to_determinant * a + to_fit * b for a, b in pairs]
            if gram_gradient:  # G / s is added to K, which has no border
                stencil, corner, *others, border = totals
                of_gram = [part / noise_variance for part in (stencil, border, corner)]
                totals = [stencil, corner, *others, *of_gram]
            return [tf.ensure_shape(g, shape) for g, shape in zip(totals, sizes, strict=True)]

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
    with_border: bool,
) -> list[Array]:
    """The status of P, the two terms, and the gradients of each. The gradients are with respect to
    stencil, corner, columns, noise variance, and the border of P if ``with_border``. The status is
    0.0 if P is finite and has no factor, else 1.0."""
    with np.errstate(all="ignore"):
        posterior = Arrow.without_border(stencil, corner) + Arrow(*gram) * (1 / noise)
    finite = all(np.all(np.isfinite(part)) for part in (*posterior, columns))
    try:
        factor = ArrowFactor(order, posterior) if finite else None
    except NotFactorised:
        factor = None
    if factor is None:
        parts = [stencil, corner, columns, noise, *[gram[1]] * with_border]
        nan = [np.full_like(part, np.nan) for part in parts]
        return [np.array(0.0 if finite else 1.0), *[np.array(np.nan)] * 2, *nan, *nan]
    solved = factor.solve(factor.solve(columns / noise), adjoint=True)
    inverse, others = factor.inverse_band(), solved[order.size :]
    products = -order.products(solved[: order.size], solved[: order.size])
    corner_products = -others @ others.T
    fit = np.sum(columns * solved) / noise
    traces = [
        np.sum(band * stencil) + np.sum(block * corner)
        for band, block in ((inverse.stencil, inverse.corner), (products, corner_products))
    ]
    size = order.size + len(corner)
    determinant_gradients = [
        inverse.stencil,
        inverse.corner,
        np.zeros_like(columns),
        (traces[0] - size) / noise,
    ]
    fit_gradients = [products, corner_products, 2 * solved / noise, (traces[1] - fit) / noise]
    if with_border:  # which is twice in P
        determinant_gradients.append(2 * inverse.border)
        fit_gradients.append(-2 * solved[: order.size] @ others.T)
    values = [np.array(1.0), np.array(2 * factor.log_determinant()), fit]
    return [*values, *determinant_gradients, *fit_gradients]
