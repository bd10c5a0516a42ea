"""The structure of space and time: products of splines of time and features of space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables

from ..._arguments import Array, BoolArray, IntArray, check_size, refusal
from ..._tracing import numpy_function
from ...core.family import Block
from ...core.functionals import Places
from ...core.structures import FeatureStructure
from ..dense import MOST_DENSE
from ..splines import Splines
from .features import ChainFeatures
from .functionals import TimePart, parts_of
from .row_gradients import row_sums
from .rows import RowFeatures, add_products, distinct, products_with

_COPIES = 6
"""Numbers in memory for each number of the precision: sums, factor, inverse and gradients."""


class SpaceTime(ChainFeatures, FeatureStructure):
    """Products of splines of time and features of space, and dense features of other blocks.

    The terms of a sum share the splines: their features of space stand side by side at each spline.
    Blocks without splines of time are the border of the matrices.
    """

    def acted(self, inducing_variable: InducingVariables, kernel: Any) -> SpaceTime | None:
        """The structure of the features under functionals; None for dense sums of few features.

        :raises ValueError: If the features are many, and :func:`.parts_of` a functional is None.
        """
        few = self.size <= MOST_DENSE
        for part in kernel.functionals:
            if parts_of(self.terms, part, self._num_inputs) is None:
                if few:
                    return None
                what = "width_columns" if part.width_columns else type(part).__name__
                rule = f"act on one factor of each product in over {MOST_DENSE:,} features"
                remedy = "pass Means of fixed widths, along columns that one factor uses"
                raise refusal("functionals", rule, f"{what} with {self.size:,}", remedy)
        others = [(block, kernel.with_prior(prior)) for block, prior in self._others]
        return SpaceTime(self.terms, others, kernel.rows)

    def explained_diagonal(self, X: tf.Tensor) -> tf.Tensor | None:
        """The diagonal from the entries of the prior's inverse within its band."""
        if self._others:
            return None
        inverse, reach = self.band(inverse=True), self.chain.reach

        def of_kind(parts: list[TimePart], places: Places) -> tf.Tensor:
            first, features, group = self.windows(parts, places)
            nodes = self.nodes_of(first, group, features.shape[1]) // self.chain.copies
            diagonal: Any = 0.0
            for d in range(min(reach + 1, features.shape[1])):
                entries = tf.gather(inverse[:, d], nodes[:, d:])
                if group is not None:
                    entries = tf.gather(entries, group, axis=2, batch_dims=1)
                else:
                    entries = entries[:, :, 0]
                products = features[:, d:] * features[:, : features.shape[1] - d] * entries
                diagonal += (2.0 if d else 1.0) * tf.reduce_sum(products, axis=[1, 2])
            return diagonal[:, None]

        return self.by_kind(X, of_kind)[:, 0]

    def explained_at_rows(self) -> BoolArray | None:
        """Whether each feature's term explains its whole prior variance at the rows of the sums,
        ``[M]``; None if no term does. With fixed places, all rows of the sums are at the places."""
        explained = np.zeros(self.size, bool)
        for term in self.terms:
            explained[term.numbers.ravel()] = term.explains_rows()
        return explained if np.any(explained) else None

    @property
    def entries(self) -> int:
        return _COPIES * self.chain.entries

    def sums(self, features: Any) -> Any:
        from .sums import ChainSums  # it imports this module

        return ChainSums(features, self)

    def in_sum(self, blocks: Sequence[Block], number: int) -> SpaceTime | None:
        from .blocks import space_time  # it imports this module

        return space_time(blocks)

    def check_size(self) -> None:
        """Check that the matrices are likely to fit into memory; a ValueError otherwise."""
        chain = self.chain
        what = (
            f"the precision of {chain.nodes:,} splines of time with {chain.copies * chain.width:,} "
            "features of space each"
        )
        is_wider = chain.reach > self.grid.reach
        name = "widths or variances of functionals" if is_wider else "inducing_variable"
        check_size(name, what, self.entries)

    def warn_of_spacing(self, incomplete: BoolArray) -> None:
        """Warn if the splines of time do not explain much of a term's prior, or are so narrow that
        rounding matters: see :meth:`.Splines.warn_of_spacing`.

        :param incomplete: Whether each feature's block leaves out a part of its kernel.
        """
        splines = [Splines([term.time], 0) for term in self.terms]
        least = np.max([each.needed() for each in splines], axis=0)
        for term, each in zip(self.terms, splines, strict=True):
            each.warn_of_spacing(incomplete[term.numbers.ravel()[:1]], least)

    # Sums over rows, as arrays.

    def row_features(self, X: tf.Tensor) -> Iterator[tuple[tf.Tensor, RowFeatures]]:
        """The rows of each functional, by their places in X, and their features, as tensors in the
        basis of the sums; the features of space have gradients."""
        for number, (chosen, places) in enumerate(self._rows_by_kind(X)):
            parts = self._kinds(int(places.inputs.shape[1]))[number]
            if tf.executing_eagerly() and not len(chosen):
                continue
            some, place = self._distinct(places)
            of_places, found, first = places.at(some), list[tuple[Any, Any]](), chosen
            for part in parts:
                numbers, splines = part.grid(places.inputs)
                found.append((splines, self._of_space(part, of_places, is_raw=True)))
                first = numbers[:, 0]
            index = self.terms[0].group_indices
            group = tf.zeros_like(first) if index is None else index(places.inputs)
            yield chosen, RowFeatures(first, found, place, tf.cast(group, tf.int64))

    def _rows_by_kind(self, X: tf.Tensor) -> Iterator[tuple[tf.Tensor, Places]]:
        """The rows of each functional, by their places in X, and their places."""
        if self._rows is None:
            yield tf.range(tf.shape(X)[0]), Places(X, X)
            return
        places, numbers = self._rows.split(X)
        for number in range(len(self._rows.functionals)):
            if numbers is None:
                yield tf.range(tf.shape(X)[0]), places
            else:
                same = tf.equal(numbers, tf.cast(number, numbers.dtype))
                chosen = tf.where(same)[:, 0]
                yield chosen, places.at(chosen)

    def _distinct(self, places: Places) -> list[tf.Tensor]:
        """The first row of each distinct place, and the number of the place of each row; all rows
        if distinct places are many."""
        width, columns = int(places.inputs.shape[1]), places.columns
        seen = [term.columns(width) for term in self.terms]
        used = np.unique(np.concatenate([np.zeros(0, np.int64), *seen]))
        parts = [tf.gather(places.inputs, used, axis=1)]
        if self._rows is not None:  # widths may be columns
            parts.append(tf.gather(columns, self._rows.added(int(columns.shape[1])), axis=1))

        def compute(columns: Array) -> list[IntArray]:
            everything = np.arange(len(columns))
            return [*(distinct(columns) or (everything, everything))]

        found = numpy_function(compute, [tf.concat(parts, axis=1)], [tf.int64] * 2, stateful=False)
        return [tf.ensure_shape(part, [None]) for part in found]

    def sums_of(self, X: tf.Tensor, weights: tf.Tensor, targets: tf.Tensor) -> list[tf.Tensor]:
        """Weighted sums over rows in the domains, with gradients with respect to the features and
        to the targets: the vector of ``sum_n w_n phi_n phi_n^T``, as of :meth:`unpacked`; and
        ``sum_n phi_n t_n^T``, ``[M, T]``, the features in their order.

        :param weights: ``[n]``.
        :param targets: ``[n, T]``.
        """
        border = self.others(X, in_domain=True)
        weighted = border * weights[:, None]
        columns, width = tf.concat([weighted, targets], axis=1), self.chain.others
        columns = tf.ensure_shape(columns, [None, width + targets.shape[1]])
        found = [
            row_sums(self.chain, rows, tf.gather(weights, chosen), tf.gather(columns, chosen))
            for chosen, rows in self.row_features(X)
        ]
        blocks, products = (tf.add_n(parts) for parts in zip(*found, strict=True))
        parts = [blocks, products[:, :width], tf.matmul(border, weighted, transpose_a=True)]
        gram = tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)
        beside = tf.matmul(border, targets, transpose_a=True)
        ordered = tf.concat([products[:, width:], beside], axis=0)
        return [gram, tf.gather(ordered, np.argsort(self.order))]

    def products(
        self, X: tf.Tensor, weights: Array, columns: Array, targets: Array
    ) -> tuple[Array, Array]:
        """Weighted sums over rows in the domains, of products of features and further columns s.

        :param weights: ``[n, L]``.
        :param columns: ``[n, H]``.
        :param targets: ``[n, T]``.
        :return: For each column of weights ``sum_n w_n s_n s_n^T``, in the form that
            :meth:`unpacked` takes; and ``sum_n s_n t_n^T``, ``[M + H, T]``, the features in their
            order.
        """
        chain, count = self.chain, weights.shape[1]
        border = np.concatenate([self.others(X, in_domain=True), columns], axis=1)
        width, size = border.shape[1], chain.num_weights
        packed = np.zeros([count, chain._replace(others=width).entries])
        grams = [self.unpacked(vector, columns.shape[1]) for vector in packed]  # views
        products = np.zeros([size + width, targets.shape[1]])
        for some, features in self.row_features(X):
            chosen, rows = some.numpy(), features.as_arrays()
            add_products(chain, [blocks for blocks, *_ in grams], rows, weights[chosen])
            weighted = [border[chosen] * w[chosen, None] for w in weights.T]
            beside = np.concatenate([*weighted, targets[chosen]], axis=1)
            sums = np.split(products_with(chain, rows, beside), width * np.arange(1, count + 1), 1)
            for (_, side, _), part in zip(grams, sums[:-1], strict=True):
                side += part
            products[:size] += sums[-1]
        for (*_, corner), w in zip(grams, weights.T, strict=True):
            corner += (border * w[:, None]).T @ border
        products[size:] = border.T @ targets
        products[self.order] = products[: self.size].copy()
        return packed, products

    def unpacked(self, gram: Any, num_columns: int = 0) -> list[Any]:
        """Blocks, border and corner from the vector of a sum of products, with ``num_columns``
        further columns in the border."""
        shapes = self.chain._replace(others=self.chain.others + num_columns).shapes
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        pairs = zip(ends[:-1], ends[1:], shapes, strict=True)
        reshape = tf.reshape if tf.is_tensor(gram) else np.reshape
        return [reshape(gram[start:end], shape) for start, end, shape in pairs]
