"""The features of rows in space and time, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...core.combined import num_inducing
from ...core.family import Block
from ...core.functional_rows import FunctionalRows
from ...core.functionals import Places
from ...core.pairs import features_of_blocks, num_columns_of_any
from ...linalg.chain import Chain
from .functionals import TimePart, parts_of
from .prior import ChainPrior
from .terms import ChainTerm, grouped

_MANY = 10_000
"""A number of inputs that has all columns of the kernels, if the number is unknown."""


class ChainFeatures(ChainPrior):
    """Features of space and time: see :class:`interdomain.sums.chain.structure.SpaceTime`.

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
        self.terms, self._others, self._rows = grouped(terms), others, rows
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
            known = [parts for parts in found if parts is not None]
            assert len(known) == len(found)  # checked by SpaceTime.acted
            self._known[num_inputs] = known
        return self._known[num_inputs]

    def others(self, X: tf.Tensor, *, in_domain: bool = False) -> tf.Tensor:
        """The dense features of rows without splines of time, ``[n, E]``, in float64.

        :param in_domain: Whether the rows are known to be in the features' domains.
        """
        return features_of_blocks(self._others, X, self.chain.others, in_domain=in_domain)

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

    @property
    def row_entries(self) -> int:
        return self.chain.width * (self.chain.reach + 1) + self.chain.others

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
