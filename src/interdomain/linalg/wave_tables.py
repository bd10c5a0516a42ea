"""Sums of products of waves by nonuniform FFTs, and sums of waves at many rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse
import tensorflow as tf

from .._arguments import Array, BoolArray, IntArray
from .dissection import strides_of
from .full import Full, FullRoot
from .operators import Summable

MOST_COLUMNS = 3

Tables: TypeAlias = npt.NDArray[np.complex128]
"""Numbers for each frequency in each column, ``[..., 2 half + 1 (of each column)]``."""

_TOLERANCE = 1e-12
"""The error of a transform, relative to the sum of its terms."""


class _Kind(NamedTuple):
    """Waves that are sines in the same columns, and the features computed from them.

    :ivar is_sine: Whether the waves are sines in each column, ``[D]``.
    :ivar features: The numbers of the features, ``[m]``.
    :ivar steps: The steps in a table from frequency zero to the waves' frequencies, by column,
        ``[w, D]``.
    :ivar combined: The features' weights of the waves, ``[m, w]``; None if waves are features.
    """

    is_sine: BoolArray
    features: IntArray
    steps: IntArray
    combined: Any

    def from_waves(self, values: Array) -> Array:
        """Numbers of the features ``[m, ...]``, from numbers of the waves ``[w, ...]``."""
        return values if self.combined is None else self.combined @ values

    def to_waves(self, values: Array) -> Array:
        """The transpose of :meth:`from_waves`, for ``[m, ...]``."""
        return values if self.combined is None else self.combined.T @ values


class BoxWaves(NamedTuple):
    """Features that are products over columns of the sines and cosines of a box, or combinations of
    these products.

    :ivar columns: The columns of X, ``[D]``.
    :ivar lower: The lower end of the box, ``[D]``.
    :ivar periods: The lengths of the box, ``[D]``.
    :ivar functions: The function of each wave in each column, ``[W, D]``: 0 for the constant,
        ``2 j - 1`` for the cosine and ``2 j`` for the sine of j periods.
    :ivar combined: The weights of the waves in the features, sparse ``[M, W]``. Each feature
        combines waves that are sines in the same columns; the waves then have amplitude one. If
        None, the waves are the features, orthonormal in the box.
    """

    columns: IntArray
    lower: Array
    periods: Array
    functions: IntArray
    combined: Any = None

    @property
    def num_features(self) -> int:
        """The number M of features."""
        return len(self.functions) if self.combined is None else int(self.combined.shape[0])

    @property
    def norms(self) -> Array:
        """The amplitude of each wave, ``[W]``: one in combinations."""
        if self.combined is not None:
            return np.ones(len(self.functions))
        norms = np.where(self.functions > 0, np.sqrt(2.0), 1.0) / np.sqrt(self.periods)
        return np.asarray(np.prod(norms, axis=1))

    def as_combined(self) -> BoxWaves:
        """These features as combinations of waves."""
        if self.combined is not None:
            return self
        return self._replace(combined=scipy.sparse.diags_array(self.norms, format="csr"))

    def is_of_box(self, other: BoxWaves) -> bool:
        """Whether the columns and the box are the same, and both are combinations or neither is."""
        same = (self.combined is None) == (other.combined is None)
        return same and all(map(np.array_equal, self[:3], other[:3]))

    def with_others(self, others: Sequence[BoxWaves]) -> BoxWaves:
        """The features of this object and of others :meth:`of the same box <is_of_box>`."""
        functions = np.concatenate([each.functions for each in (self, *others)])
        if self.combined is None:
            return self._replace(functions=functions)
        combined = scipy.sparse.block_diag([each.combined for each in (self, *others)], "csr")
        return self._replace(functions=functions, combined=combined)


class WaveTables:
    """Sums over rows of products of waves, read from a small table into which the rows are summed.

    A product of two waves is a sum of waves of the sums and the differences of their frequencies.
    So the M^2 sums of products of features are read from a table of

        T(k) = sum_n w_n exp(2 pi i k^T ((x_n - lower) / P)),    |k_d| <= 2 max_m j_md,

    which finufft computes for N rows in O(N + K log K), K being the size of the table (Barnett,
    Magland and af Klinteberg 2019). Tables of batches add up to the table of all rows. Transposed,
    the lookup makes the mean and variance of f sums of waves, for any number of rows.

    :param waves: The features, of one to three columns.
    """

    def __init__(self, waves: BoxWaves) -> None:
        self._waves, functions = waves, waves.functions
        frequencies = (functions + 1) // 2
        half = 2 * np.max(frequencies, axis=0)
        self.shape = tuple(int(size) for size in 2 * half + 1)
        strides = strides_of(self.shape)
        self._zero = int(half @ strides)
        are_sines = (functions > 0) & (functions % 2 == 0)
        kinds, kind_of = np.unique(are_sines, axis=0, return_inverse=True)
        self._kinds = []
        for number, is_sine in enumerate(kinds):
            members = np.flatnonzero(kind_of.reshape(-1) == number)
            steps, features, combined = frequencies[members] * strides, members, waves.combined
            if combined is not None:
                combined = combined[:, members]
                is_member = np.diff(combined.indptr) > 0
                if not number:
                    is_member |= np.diff(waves.combined.indptr) == 0  # features that are zero
                features = np.flatnonzero(is_member)
                combined = combined[features]
            self._kinds.append(_Kind(is_sine, features, steps, combined))
        self._norms = waves.norms if waves.combined is None else np.ones(waves.num_features)

    def table(self, X: Array, strengths: Array) -> Tables:
        """The tables of some rows, ``[K, ...]``.

        :param X: The rows with all columns, ``[n, ...]``.
        :param strengths: The weights w, ``[n, K]``.
        """
        found = self._transform(1)(*self._angles(X), _paired(strengths.T), self.shape)
        tables = np.empty((strengths.shape[1], *self.shape), np.complex128)
        tables[::2] = np.reshape(found, tables[::2].shape)
        first, second = tables[:-1:2], tables[1::2]
        # For real weights, the conjugate is at the opposite frequency.
        opposite = np.conj(np.flip(first, range(1, tables.ndim)))
        second[...] = (first - opposite) / 2j
        first[...] = (first + opposite) / 2
        return tables

    def gram(self, table: Tables) -> Array:
        """The sums ``sum_n w_n phi_m phi_m'``, ``[M, M]``, from one table."""
        numbers, blocks = range(len(self._kinds)), dict[tuple[int, int], Array]()
        for pair in itertools.combinations_with_replacement(numbers, 2):
            some, others = (self._kinds[number] for number in pair)
            values = _turned(table, some.is_sine ^ others.is_sine).real.ravel()
            lookups = self._lookups(some, others)
            block = np.asarray(sum((factor * values)[places] for factor, places in lookups))
            block = others.from_waves(some.from_waves(block).T).T
            blocks[pair], blocks[pair[::-1]] = block, block.T
        # Whole rows are put in order one by one: scattering blocks would take longer than lookups.
        gram = np.empty([len(self._norms)] * 2)
        order = np.argsort(np.concatenate([some.features for some in self._kinds]))
        for number, some in enumerate(self._kinds):
            rows = np.concatenate([blocks[number, other] for other in numbers], axis=1)
            gram[some.features] = rows.take(order, axis=1)
        gram *= self._norms[:, None]
        gram *= self._norms
        return gram

    def products(self, tables: Sequence[Tables] | Tables) -> Array:
        """The sums ``sum_n w_n phi_m``, ``[M, K]``, from K tables."""
        products = np.empty([len(self._norms), len(tables)])
        for some in self._kinds:
            places = self._zero + some.steps.sum(axis=1)
            values = [_turned(table, some.is_sine).real.ravel()[places] for table in tables]
            products[some.features] = some.from_waves(np.transpose(values))
        products *= self._norms[:, None]
        return products

    def linear_table(self, weights: Array) -> Tables:
        """The table whose sum of waves is ``c^T phi``, for c ``[M]``."""
        total, scaled = np.zeros(self.shape, np.complex128), weights * self._norms
        for some in self._kinds:
            places = self._zero + some.steps.sum(axis=1)
            values = some.to_waves(scaled[some.features])
            total += _turned(self._added(places, values), some.is_sine)
        return total

    def quadratic_table(self, matrix: Array) -> Tables:
        """The table whose sum of waves is ``phi^T C phi``, for a symmetric C ``[M, M]``."""
        total = np.zeros(self.shape, np.complex128)
        scaled = matrix * (self._norms[:, None] * self._norms)
        for some, others in itertools.combinations_with_replacement(self._kinds, 2):
            block = scaled[np.ix_(some.features, others.features)]
            if some is not others:
                block *= 2
            block = others.to_waves(some.to_waves(block).T).T
            lookups = self._lookups(some, others)
            added = sum(sign * self._added(places, block) for sign, places in lookups)
            total += _turned(np.asarray(added), some.is_sine ^ others.is_sine)
        return total

    def products_of_sums(self, table: Tables, weights: Array) -> Array:
        """The sums ``sum_n w_n phi_m phi_n^T c``, ``[M]``, for c ``[M]``, from the table of w."""
        middle = tuple(slice(size // 4, size - size // 4) for size in self.shape)
        spectrum = np.fft.fftn(np.flip(self.linear_table(weights)[middle]), self.shape)
        spectrum *= np.fft.fftn(table)
        valid = tuple(slice(size // 2, None) for size in self.shape)
        product = np.zeros(self.shape, np.complex128)
        product[middle] = np.fft.ifftn(spectrum)[valid]
        return self.products([product])[:, 0]

    def at(self, X: Array, tables: Tables) -> Array:
        """The sums of waves of tables ``[K, ...]`` at rows with all columns, ``[K, n]``."""
        pairs = _paired(tables)
        values = np.reshape(self._transform(2)(*self._angles(X), pairs), (len(pairs), len(X)))
        both = np.stack([values.real, values.imag], axis=1)
        return both.reshape(-1, len(X))[: len(tables)]

    def _transform(self, kind: int) -> Callable[..., Tables]:
        """The transform from rows to a table (1), or from a table to rows (2)."""
        import finufft  # only if it is needed: it starts threads

        transform = getattr(finufft, f"nufft{len(self.shape)}d{kind}")
        return partial(transform, eps=_TOLERANCE, isign=1)

    def _angles(self, X: Array) -> list[Array]:
        turns = (X[:, self._waves.columns] - self._waves.lower) / self._waves.periods
        return list(np.ascontiguousarray(2 * np.pi * (turns - np.round(turns)).T))

    def _lookups(self, some: _Kind, others: _Kind) -> Iterator[tuple[float, IntArray]]:
        """Factors, and places ``[m, m']`` in a turned table. The entries at the places times the
        factors add up to the products of the two kinds of waves. In a column
        ``2 cos a cos b = cos(a + b) + cos(a - b)``; sines have similar formulas."""
        first = self._zero + some.steps.sum(axis=1)
        for signs in itertools.product((1, -1), repeat=len(self.shape)):
            is_minus = others.is_sine & (some.is_sine == (np.array(signs) > 0))
            factor = 0.5 ** len(signs) * (-1.0) ** np.count_nonzero(is_minus)
            yield factor, first[:, None] + others.steps @ np.array(signs)

    def _added(self, places: IntArray, values: Array) -> Array:
        """A table of zeros to which values are added at places."""
        size = int(np.prod(self.shape))
        return np.bincount(places.ravel(), values.ravel(), size).astype(float).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class WaveGram(Summable):
    """The sums of products ``sum_n w_n phi_m phi_m'`` ``[M, M]``, stored as one table.

    :ivar tables: The features.
    :ivar table: One table, of :meth:`WaveTables.table`.
    """

    tables: WaveTables
    table: Tables

    @property
    def parts(self) -> tuple[Tables]:
        return (self.table,)

    def with_parts(self, table: Tables) -> WaveGram:
        return WaveGram(self.tables, table)

    def matmul(self, columns: Array) -> Array:
        """The products with columns, in O(T log T) for each column and T numbers in a table."""
        table = np.asarray(self.table)
        products = [self.tables.products_of_sums(table, column) for column in columns.T]
        return np.stack(products, axis=1)

    def to_dense(self) -> Array:
        return self.tables.gram(np.asarray(self.table))

    def diag_part(self) -> Array:
        return np.diagonal(self.to_dense())

    def root(self) -> FullRoot:
        """The dense Cholesky factor."""
        return Full(tf.constant(self.to_dense())).root()


def _turned(table: npt.NDArray[Any], is_sine: BoolArray) -> Tables:
    """Sums of exponentials as sums of products of cosines and sines, or the reverse, for
    frequencies of both signs."""
    for column, sine in enumerate(is_sine):
        flipped = np.flip(table, axis=column)
        table = (table - flipped) / 2j if sine else (table + flipped) / 2
    return table


def _paired(parts: npt.NDArray[Any]) -> Tables:
    """The parts in pairs, one plus i times the next, for one transform: both have real sums."""
    pairs = parts[::2].astype(np.complex128, order="C")
    pairs[: len(parts) // 2] += 1j * parts[1::2]
    return pairs
