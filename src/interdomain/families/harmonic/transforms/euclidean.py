"""Transformations of R^D: reflections, rotations, and negations along principal components."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import tensorflow as tf

from ...._arguments import Array, filled_matrix, integer, refusal
from .base import MAX_ORDER, TOLERANCE, IntArray, as_order
from .closed_form import ClosedFormTransform, as_dims, as_vector, constant, gather_columns, spread
from .product import Product


class Negation(ClosedFormTransform):
    """The map ``x -> 2 centre - x`` of some columns, of order 2 (Sun et al. 2021, Definition 3.2).

    A negation splits a kernel into a kernel of even functions and a kernel of odd functions.

    :param dims: The different columns that are negated, one int or several; all by default.
    :param centre: The fixed point, a finite scalar or one number for each negated column.
    :raises ValueError: If an argument is not as above.
    """

    shown = ("dims", "centre")
    order = 2

    def __init__(
        self, dims: int | Sequence[int] | None = None, centre: float | Sequence[float] | Array = 0.0
    ) -> None:
        self.dims = None if dims is None else as_dims(dims)
        size = None if self.dims is None else len(self.dims)
        self.centre = as_vector("centre", centre, size, "negated column")
        if self.dims is not None:
            self.min_input_dim = max(self.dims) + 1
        elif self.centre.ndim:
            self.input_dim = self.min_input_dim = self.centre.size

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        columns = X.shape[-1]
        dims = range(columns) if self.dims is None else self.dims
        offset = constant(spread(2.0 * self.centre, dims, columns, 0.0), X)
        return (offset + constant(spread(np.array(-1.0), dims, columns, 1.0), X) * X)[None]


class Rotation(ClosedFormTransform):
    """The rotation by ``2 pi / order`` in the plane of two columns, about a centre.

    The rotation turns the first column towards the second; the other columns do not change.

    :param order: The order T, 2 or more.
    :param dims: Two different columns.
    :param centre: The centre, a finite scalar or one number for each of the two columns.
    :raises ValueError: If an argument is not as above.
    """

    shown = ("order", "dims", "centre")

    def __init__(
        self,
        order: int,
        dims: Sequence[int] = (0, 1),
        centre: float | Sequence[float] | Array = 0.0,
    ) -> None:
        self.order = as_order(order)
        self.dims = as_dims(dims, 2)
        self.centre = as_vector("centre", centre, 2, "rotated column")
        self.min_input_dim = max(self.dims) + 1

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        centre = constant(spread(self.centre, self.dims, X.shape[-1], 0.0), X)
        return centre + rotate(X - centre, self.dims, exponents, self.order)


def rotate(X: tf.Tensor, dims: Sequence[int], exponents: IntArray, order: int) -> tf.Tensor:
    """The images of X ``[N, D]`` under rotations by ``2 pi exponents / order``, ``[K, N, D]``."""
    first, second = dims
    angles = 2.0 * np.pi * exponents / order
    cosine, sine = np.cos(angles), np.sin(angles)
    quarter = 4 * exponents % order == 0  # rounded to exact values: zero instead of 6e-17
    cosine[quarter], sine[quarter] = np.round(cosine[quarter]), np.round(sine[quarter])

    columns = X.shape[-1]
    swap = np.arange(columns)
    swap[[first, second]] = second, first
    straight = np.ones((len(exponents), 1, columns))
    swapped = np.zeros_like(straight)
    straight[:, 0, first] = straight[:, 0, second] = cosine
    swapped[:, 0, first], swapped[:, 0, second] = -sine, sine
    return constant(straight, X) * X + constant(swapped, X) * gather_columns(X, swap[None])


class Orthogonal(ClosedFormTransform):
    """The map ``x -> centre + R (x - centre)`` for an orthogonal matrix R of finite order.

    :param matrix: R ``[D, D]``. The order T is the smallest with ``R^T = I``.
    :param centre: The fixed point, a scalar or ``[D]``.
    :raises ValueError: If R is not square, not finite, or not orthogonal to 1e-9; if it has no
        order up to 65,536; or if ``centre`` does not fit or is not finite.
    """

    shown = ("matrix", "order", "centre")

    def __init__(
        self,
        matrix: Sequence[Sequence[float]] | Array,
        centre: float | Sequence[float] | Array = 0.0,
    ) -> None:
        self.matrix = filled_matrix("matrix", matrix, "an orthogonal matrix [D, D]")
        validate_orthonormal("matrix", self.matrix)
        self.input_dim = self.min_input_dim = len(self.matrix)
        self.centre = as_vector("centre", centre, self.input_dim, "column")
        candidates = np.arange(1, MAX_ORDER + 1)
        for angle in np.angle(np.linalg.eigvals(self.matrix)):
            candidates = candidates[np.abs(np.exp(1j * angle * candidates) - 1.0) <= TOLERANCE]
        if not candidates.size:
            raise ValueError(
                f"matrix has no power up to {MAX_ORDER} that is the identity to {TOLERANCE}; pass "
                "a matrix of finite order, in float64."
            )
        if candidates[0] == 1:
            raise ValueError("matrix is the identity, which decomposes nothing; leave it out.")
        self.order = int(candidates[0])

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        matrices = self._each(partial(np.linalg.matrix_power, self.matrix), exponents)
        centre = constant(self.centre, X)
        return centre + tf.matmul((X - centre)[None], constant(matrices, X), transpose_b=True)


def validate_orthonormal(name: str, rows: Array) -> None:
    """Check that the rows are orthonormal to 1e-9; a ValueError otherwise."""
    error = np.max(np.abs(rows @ rows.T - np.eye(len(rows))))
    if error > TOLERANCE:
        remedy = "pass np.linalg.qr(rows.T)[0].T, computed in float64"
        rule = "have orthonormal rows"
        raise refusal(name, rule, f"an error of {error:.3g} in their inner products", remedy)


class PrincipalNegation(ClosedFormTransform):
    """The reflection ``x -> x - 2 V^T V (x - centre)`` along the rows of V through a centre.

    It is a :class:`Negation` in rotated coordinates, so its order is 2. :meth:`from_data` builds
    the product of negations that Sun et al. 2021, section 3.5, use to decompose a kernel.

    :param directions: V ``[K, D]``, with rows that are orthonormal to 1e-9.
    :param centre: The fixed point, a finite scalar or ``[D]``.
    :raises ValueError: If an argument is not as above.
    """

    shown = ("directions", "centre")
    order = 2

    def __init__(
        self, directions: Sequence[Sequence[float]] | Array, centre: float | Sequence[float] | Array
    ) -> None:
        self.directions = filled_matrix("directions", directions, "a matrix [K, D]")
        validate_orthonormal("directions", self.directions)
        self.input_dim = self.min_input_dim = self.directions.shape[1]
        self.centre = as_vector("centre", centre, self.input_dim, "column")

    @staticmethod
    def from_data(X: Sequence[Sequence[float]] | Array, num_groups: int) -> Product:
        """The product of ``num_groups`` negations that share the principal components of X.

        The D components are sorted by decreasing variance and assigned to the groups in turn. Group
        1 negates the components 1, 1 + num_groups, ...; group 2 negates 2, 2 + num_groups, ... The
        centre is the mean of the data. The product has ``2^num_groups`` elements.

        :param X: Finite data ``[N, D]``, as a NumPy array.
        :param num_groups: The number of groups, from 1 to D.
        :raises ValueError: If an argument is not as above.
        """
        data = filled_matrix("X", X, "a matrix [N, D]")
        rows, columns = data.shape
        remedy = "pass at most the number of columns: each group needs a component of its own"
        groups = integer("num_groups", num_groups, at_least=1, at_most=columns, remedy=remedy)
        mean = data.mean(axis=0)
        # All D directions are needed, also if there are fewer rows than columns.
        directions = np.linalg.svd(data - mean, full_matrices=rows < columns)[2]
        return Product([PrincipalNegation(directions[i::groups], mean) for i in range(groups)])

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        directions = constant(self.directions, X)
        components = tf.matmul(X - constant(self.centre, X), directions, transpose_b=True)
        return (X - 2.0 * tf.matmul(components, directions))[None]
