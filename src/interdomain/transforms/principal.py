"""Negation along directions, such as the principal components of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from .._arguments import as_integer, short
from ..sphere._typing import Array
from ._arguments import IntArray, as_matrix, as_vector
from .closed_form import ClosedFormTransform, constant
from .euclidean import around, validate_orthonormal
from .product import Product


class PrincipalNegation(ClosedFormTransform):
    """``x -> x - 2 V^T V (x - centre)``: the reflection along the rows of V through a centre.

    Its order is 2, and it is a :class:`Negation` in rotated coordinates. :meth:`from_data` makes
    the products of such negations along which Sun et al. 2021, section 3.5, decompose a kernel.

    :param directions: V ``[K, D]``, with orthonormal rows.
    :param centre: The fixed point, a scalar or ``[D]``.
    :raises ValueError: If the rows are not orthonormal to 1e-9, or ``centre`` does not fit them
        or is not finite.
    """

    order = 2

    def __init__(
        self,
        directions: Sequence[Sequence[float]] | Array,
        centre: float | Sequence[float] | Array,
    ) -> None:
        self.directions = as_matrix("directions", directions, "pass one direction a row, [K, D]")
        validate_orthonormal("directions", self.directions)
        self.input_dim = self.min_input_dim = self.directions.shape[1]
        self.centre = as_vector("centre", centre, self.input_dim, "column")
        self.verify_order()

    @staticmethod
    def from_data(X: Sequence[Sequence[float]] | Array, num_groups: int) -> Product:
        """The product of ``num_groups`` negations, which divide the principal components of X
        among them.

        The D components are sorted by decreasing variance and assigned to the groups in turn: the
        first group negates the components 1, 1 + num_groups, ..., the second 2, 2 + num_groups, ...
        All negations are about the mean of the data. The product has ``2^num_groups`` elements.

        :param X: Data ``[N, D]``, as a NumPy array.
        :param num_groups: From 1 to D.
        :raises ValueError: If X is not a matrix of finite numbers with two rows or more, or
            ``num_groups`` is not in that range.
        """
        data = as_matrix("X", X, "pass the inputs as [N, D]")
        num_rows, num_columns = data.shape
        if num_rows < 2:
            raise ValueError(f"X must have 2 rows or more, found {num_rows}; pass more data.")
        groups = as_integer(num_groups)
        if groups is None or not 1 <= groups <= num_columns:
            raise ValueError(
                f"num_groups must be an integer from 1 to {num_columns}, the number of "
                f"columns, found {num_groups!r}; pass such a number, as every group needs a "
                "principal component of its own."
            )
        mean = data.mean(axis=0)
        # All D directions, also where there are fewer rows than columns.
        directions = np.linalg.svd(data - mean, full_matrices=num_rows < num_columns)[2]
        return Product([PrincipalNegation(directions[i::groups], mean) for i in range(groups)])

    def __repr__(self) -> str:
        return f"PrincipalNegation({short(self.directions)}, centre={short(self.centre)})"

    def to_domain(self, normals: Array) -> Array:
        return around(np.broadcast_to(self.centre, normals.shape[1:]), normals)

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        directions = constant(self.directions, X)
        components = tf.matmul(X - constant(self.centre, X), directions, transpose_b=True)
        return (X - 2.0 * tf.matmul(components, directions))[None]
