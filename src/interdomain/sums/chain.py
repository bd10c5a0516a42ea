"""The structure of space and time: products of splines of time and features of space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, BoolArray, IntArray, check_size, refusal
from .._tracing import numpy_function
from ..core.combined import num_inducing
from ..core.family import Block
from ..core.functional_rows import FunctionalRows
from ..core.functionals import Places
from ..core.pairs import (
    Kuf_in_domain,
    Kuu_operator,
    as_family,
    num_columns_of_any,
    structure_of,
)
from ..core.structures import FeatureStructure
from ..linalg import StructuredOperator
from ..linalg.block_diagonal import block_diagonal
from ..linalg.chain import Chain
from ..linalg.full import Full
from ..linalg.spline_grid import SplineGrid
from .chain_functionals import TimePart, parts_of
from .chain_row_gradients import row_sums
from .chain_rows import RowFeatures, add_products, distinct, products_with
from .chain_terms import ChainTerm
from .dense import MOST_DENSE
from .groups import Groups
from .splines import Splines

_COPIES = 6
"""Numbers in memory for each number of the precision: sums, factor, inverse and gradients."""

_MANY = 10_000
"""A number of inputs that has all columns of the kernels, if the number is unknown."""


class SpaceTime(FeatureStructure):
    """Products of splines of time and features of space, and dense features of other blocks.

    The terms of a sum share the splines: their features of space stand side by side at each spline.
    Blocks without splines of time are the border of the matrices.

    :param terms: The terms.
    :param others: The blocks without splines of time.
    :param rows: The functionals of rows; None for values.
    :ivar chain: The sizes of the matrices.
    :ivar order: The numbers of all features in another order: those of the terms first, by spline,
        group and feature of space, ``[M]``.
    """

    def __init__(
        self,
        terms: Sequence[ChainTerm],
        others: Sequence[Block] = (),
        rows: FunctionalRows | None = None,
    ) -> None:
        self.terms, self._others, self._rows = _grouped(terms), others, rows
        self.grid = self.terms[0].grid
        numbers = np.concatenate([term.numbers for term in self.terms], axis=2)
        self.size = numbers.size + sum(int(num_inducing(block)) for block, _ in others)
        first = numbers.ravel()
        self.order = np.concatenate([first, np.delete(np.arange(self.size), first)])
        nodes, copies, width = numbers.shape
        self._known: dict[int, list[list[TimePart]]] = {}  # by the number of inputs
        of_rows = self._kinds(self._num_inputs)
        reach = max(part.grid.reach for parts in of_rows for part in parts)
        self.chain = Chain(nodes, reach, copies, width, self.size - numbers.size)

    @property
    def _num_inputs(self) -> int:
        """A number of inputs that has all columns of the kernels."""
        pairs = [pair for term in self.terms for pair in (term.time, *term.space)]
        return num_columns_of_any(pairs) or _MANY

    def _kinds(self, num_inputs: int) -> list[list[TimePart]]:
        """The parts of the functionals of rows."""
        if self._rows is None:
            return [[TimePart(self.grid, [[(1.0, ())] for _ in self.terms])]]
        if num_inputs not in self._known:
            found = [parts_of(self.terms, part, num_inputs) for part in self._rows.functionals]
            self._known[num_inputs] = [parts for parts in found if parts is not None]
        return self._known[num_inputs]

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

    @property
    def entries(self) -> int:
        return _COPIES * self.chain.entries

    @property
    def row_entries(self) -> int:
        return self.chain.width * (self.chain.reach + 1) + self.chain.others

    def sums(self, features: Any) -> Any:
        from .chain_sums import ChainSums  # it imports this module

        return ChainSums(features, self)

    def in_sum(self, blocks: Sequence[Block], number: int) -> SpaceTime | None:
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
        for term in self.terms:
            part = incomplete[term.numbers.ravel()[:1]]
            Splines([term.time], 0).warn_of_spacing(part)

    # Features of rows, as tensors.

    def others(self, X: tf.Tensor, *, in_domain: bool = False) -> tf.Tensor:
        """The dense features of rows without splines of time, ``[n, E]``, in float64.

        :param in_domain: Whether the rows are known to be in the features' domains.
        """
        covariances = Kuf_in_domain if in_domain else Kuf
        features = [tf.cast(covariances(*block, X), tf.float64) for block in self._others]
        none = tf.zeros([0, tf.shape(X)[0]], tf.float64)
        stacked = tf.concat([none, *features], axis=0)
        return tf.linalg.matrix_transpose(tf.ensure_shape(stacked, [self.chain.others, None]))

    def _of_space(self, part: TimePart, places: Places, *, is_raw: bool = False) -> tf.Tensor:
        """The features of space of all terms, ``[n, m]``: see :meth:`.ChainTerm.features`."""
        found = []
        for term, rules in zip(self.terms, part.rules, strict=True):
            values = [factor * term.features(places, rule, is_raw=is_raw) for factor, rule in rules]
            none = tf.zeros([tf.shape(places.inputs)[0], term.width], tf.float64)
            found.append(tf.add_n(values) if values else none)
        return tf.concat(found, axis=1)

    def by_kind(self, X: tf.Tensor, function: Callable[[list[TimePart], Places], Any]) -> tf.Tensor:
        """The values of a function at rows, for the rows of each functional together.

        :param function: Maps the parts of a functional, and the places of its rows, to ``[m, C]``.
        """
        if self._rows is None:
            return function(self._kinds(int(X.shape[1]))[0], Places(X, X))
        kinds = self._kinds(len(self._rows.seen_inputs(int(X.shape[1]))))
        return self._rows.by_kind(X, lambda k, places: function(kinds[k], places))

    def windows(
        self, parts: list[TimePart], places: Places
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
        """The features of rows of one functional: the number of the first spline, ``[n]``; the
        whitened features ``[n, q, m]`` of q splines; and the group of each row, if there are any.

        :raises ValueError: If a row is outside of the box of the splines; in a graph the error is
            an InvalidArgumentError.
        """
        features: Any = 0.0
        for part in parts:
            numbers, splines = part.grid(part.grid.in_box(places.inputs))
            features += splines[:, :, None] * self._of_space(part, places)[:, None]
        index = self.terms[0].group_indices
        group = None if index is None else tf.cast(index(places.inputs), tf.int64)
        return numbers[:, 0], features, group

    def nodes_of(self, first: tf.Tensor, group: tf.Tensor | None, count: int) -> tf.Tensor:
        """The numbers of ``count`` splines from the first, ``[n, count]``, times the number of
        groups and plus the group of the row."""
        nodes = (first[:, None] + tf.range(count, dtype=tf.int64)) * self.chain.copies
        return nodes if group is None else nodes + group[:, None]

    def values(self, weights: tf.Tensor, X: tf.Tensor) -> tf.Tensor:
        """The whitened features of rows, in the order of :attr:`order`, times weights ``[S, M,
        L]``: ``[S, n, L]``."""
        chain = self.chain
        samples, _, latents = weights.shape
        nodes, others = tf.split(weights, [chain.num_weights, chain.others], axis=1)
        by_node = tf.reshape(nodes, [samples, chain.nodes * chain.copies, chain.width, latents])

        def of_kind(parts: list[TimePart], places: Places) -> tf.Tensor:
            first, features, group = self.windows(parts, places)
            chosen = self.nodes_of(first, group, features.shape[1])
            found = tf.einsum("nqm,snqml->nsl", features, tf.gather(by_node, chosen, axis=1))
            return tf.reshape(found, [-1, samples * latents])

        found = tf.reshape(self.by_kind(X, of_kind), [-1, samples, latents])
        sums = tf.transpose(found, [1, 0, 2])
        return sums + tf.einsum("ne,sel->snl", self.others(X), others)

    def entries_per_row(self, weights: tf.Tensor) -> int:
        """The count of numbers that :meth:`values` has in memory for each row."""
        samples, _, latents = map(int, weights.shape)
        return samples * latents * self.row_entries

    def dense(self, X: tf.Tensor) -> tf.Tensor:
        """All whitened features of few rows, in the order of :attr:`order`, ``[M, n]``."""
        chain = self.chain

        def of_kind(parts: list[TimePart], places: Places) -> tf.Tensor:
            first, features, group = self.windows(parts, places)
            count, window = tf.shape(first, tf.int64)[0], features.shape[1]
            chosen = self.nodes_of(first, group, window)
            rows = tf.repeat(tf.range(count)[:, None], window, axis=1)
            shape = tf.stack([count, chain.nodes * chain.copies, chain.width])
            dense = tf.scatter_nd(tf.stack([rows, chosen], axis=-1), features, shape)
            return tf.reshape(dense, [-1, chain.num_weights])

        stacked = tf.concat([self.by_kind(X, of_kind), self.others(X)], axis=1)
        return tf.linalg.matrix_transpose(stacked)

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

    # The prior.

    def band(self, *, inverse: bool = False) -> tf.Tensor:
        """The prior precision of whitened weights (or its inverse) within the band, whose blocks
        are diagonal: ``[N, p + 1, g, m]``."""
        reach, bands = self.chain.reach, []
        for term in self.terms:
            of_time = term.inverse_band(reach) if inverse else term.band(reach)
            of_space = 1 / term.precisions() if inverse else term.precisions()
            bands.append(of_time[:, :, None, None] * of_space)
        return tf.concat(bands, axis=3)

    def whitening(self, *, of_Kuf: bool = False) -> tf.Tensor | None:
        """The matrix that whitens features of space, in the basis of the sums or of Kuf, ``[m,
        m]``; None for the identity."""
        return self._joined([term.whitening(of_Kuf=of_Kuf) for term in self.terms])

    def from_raw(self) -> tf.Tensor | None:
        """The matrix that maps features of space in the basis of the sums to those of Kuf, ``[m,
        m]``; None for the identity."""
        return self._joined([term.from_raw() for term in self.terms])

    def _joined(self, matrices: Sequence[tf.Tensor | None]) -> tf.Tensor | None:
        if all(matrix is None for matrix in matrices):
            return None
        filled = [
            tf.eye(term.width, dtype=tf.float64) if matrix is None else matrix
            for term, matrix in zip(self.terms, matrices, strict=True)
        ]
        operators = [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in filled]
        return tf.linalg.LinearOperatorBlockDiag(operators).to_dense()

    def log_determinant(self) -> tf.Tensor:
        """The log determinant of the prior precision of the whitened weights of all terms."""
        return tf.add_n([term.log_determinant() for term in self.terms])

    def Kuu_of_others(self) -> StructuredOperator:
        """Kuu of the features without splines of time, in float64."""
        jitter = gpflow.config.default_jitter()
        others = [Kuu_operator(*block, jitter=jitter) for block in self._others]
        if not others:
            return Full(tf.zeros([0, 0], tf.float64))
        return block_diagonal([part.cast(tf.float64) for part in others])


def space_time(blocks: Sequence[Block]) -> SpaceTime | None:
    """The structure of blocks of which some are products with splines of time; None if none is.

    :raises ValueError: If two blocks have different splines of time.
    """
    starts = np.cumsum([0, *(int(num_inducing(block)) for block, _ in blocks)])
    terms = [term_of(block, start) for block, start in zip(blocks, starts[:-1], strict=True)]
    known = [term for term in terms if term is not None]
    if not any(term.space for term in known):
        return None  # splines of time alone
    grids = [term.grid for term in known]
    for other in grids[1:]:
        same = np.array_equal(other.columns, grids[0].columns) and other.shape == grids[0].shape
        ends = zip((other.lower, other.steps), (grids[0].lower, grids[0].steps), strict=True)
        if not (same and all(np.array_equal(*pair) for pair in ends)):
            raise refusal(
                "inducing_variable",
                "have the same splines of time in all terms",
                f"{_described(grids[0])} and {_described(other)}",
                "build all terms with one SplineFeatures object",
            )
    return SpaceTime(known, [block for block, term in zip(blocks, terms, strict=True) if not term])


def _described(grid: SplineGrid) -> str:
    end = grid.lower[0] + grid.steps[0] * grid.num_cells[0]
    return f"{grid.size:,} of column {grid.columns[0]} from {grid.lower[0]:g} to {end:g}"


def term_of(block: Block, start: int) -> ChainTerm | None:
    """The term of a block; None if it is no product with splines of one column.

    :param start: The number of the block's first feature among all features.
    """
    family, kernel = as_family(*block)
    pairs = family.pairs(kernel) if getattr(family, "has_all", False) else [block]
    number = _time_of(pairs)
    return None if number is None else ChainTerm.from_pairs(pairs, number, start)


def of_product(pairs: Sequence[Block]) -> SpaceTime:
    """The structure of all products of factors, one of which is splines of time."""
    number = _time_of(pairs)
    assert number is not None
    return SpaceTime([ChainTerm.from_pairs(pairs, number, 0)])


def _time_of(pairs: Sequence[Block]) -> int | None:
    """The index of the factor that is splines of one column; None if there is none.

    :raises ValueError: If there are several.
    """
    numbers = [number for number, pair in enumerate(pairs) if is_time(*pair)]
    if len(numbers) > 1:
        raise refusal(
            "inducing_variables",
            "have splines of one column, time, in a product",
            " and ".join(_described(grid_of(*pairs[number])) for number in numbers),
            "pass one SplineFeatures of both columns, or other features of space",
        )
    return numbers[0] if numbers else None


def grid_of(inducing_variable: InducingVariables, kernel: Kernel) -> SplineGrid:
    """The grid of splines."""
    family, base = as_family(inducing_variable, kernel)
    grid: SplineGrid = family.grid(base)
    return grid


def is_time(inducing_variable: InducingVariables, kernel: Kernel) -> bool:
    """Whether features are splines of one column."""
    family, base = as_family(inducing_variable, kernel)
    return hasattr(family, "grid") and len(family.grid(base).shape) == 1


def _grouped(terms: Sequence[ChainTerm]) -> list[ChainTerm]:
    """The terms with groups as copies that share no weight, if all have the same groups."""
    found = []
    if any(term.groups is not None for term in terms):
        return list(terms)
    for term in terms:
        numbers = [k for k, pair in enumerate(term.space) if _levels(pair) is not None]
        if not numbers:
            return list(terms)
        found.append((term, numbers[0]))
    levels: list[Any] = [_levels(term.space[number]) for term, number in found]
    if not all(np.array_equal(levels[0], other) for other in levels[1:]):
        return list(terms)
    return [term.grouped(number) for term, number in found]


def _levels(pair: Block) -> Array | None:
    if not isinstance(structure_of(*pair), Groups):
        return None
    return np.asarray(pair[0].levels)
