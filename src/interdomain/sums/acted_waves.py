"""Tables of waves for rows that are linear functionals of f: one table for each functional."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import gpflow
import numpy as np
import scipy.sparse
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, IntArray
from ..core.averages import Areas
from ..core.functional_rows import FunctionalRows
from ..core.functionals import ByDegree, LinearFunctional, Value
from ..core.pairs import Kuf_in_domain
from ..core.wave_functionals import acted_waves
from ..linalg.wave_tables import BoxWaves, Tables, WaveTables


class RowTables(Protocol):
    """The sums over rows that a table holds. For the methods see :class:`.WaveTables`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a table."""

    def table(self, X: Array, strengths: Array) -> Tables: ...
    def gram(self, table: Tables) -> Array: ...
    def products(self, tables: Sequence[Tables] | Tables) -> Array: ...
    def linear_table(self, weights: Array) -> Tables: ...
    def quadratic_table(self, matrix: Array) -> Tables: ...
    def products_of_sums(self, table: Tables, weights: Array) -> Array: ...
    def at(self, X: Array, tables: Tables) -> Array: ...


class ActedTables:
    """The tables of rows with several functionals, one after the other in a vector.

    :param parts: The tables of each functional, for rows that have the inputs of the prior.
    :param rows: The functionals.
    """

    def __init__(self, parts: Sequence[RowTables], rows: FunctionalRows) -> None:
        self._parts, self._rows = parts, rows
        self._ends = np.cumsum([np.prod(part.shape, dtype=int) for part in parts])
        self.shape = (int(self._ends[-1]),)

    def table(self, X: Array, strengths: Array) -> Tables:
        """The tables of some rows, ``[K, ...]``."""
        tables = np.zeros([strengths.shape[1], *self.shape], np.complex128)
        for (part, own), rows in zip(self._each(tables), self._rows.kinds(X), strict=True):
            if len(rows):
                places, _ = self._rows.arrays(X[rows])
                own[...] = part.table(places, strengths[rows])
        return tables

    def gram(self, table: Tables) -> Array:
        """The sums ``sum_n w_n phi_m phi_m'``, ``[M, M]``."""
        grams = (part.gram(own) for part, own in self._each(table))
        return sum(grams, np.zeros([]))

    def products(self, tables: Sequence[Tables] | Tables) -> Array:
        """The sums ``sum_n w_n phi_m``, ``[M, K]``, from K tables."""
        products = (part.products(own) for part, own in self._each(np.asarray(tables)))
        return sum(products, np.zeros([]))

    def linear_table(self, weights: Array) -> Tables:
        """The table for ``c^T phi``."""
        return np.concatenate([part.linear_table(weights).ravel() for part in self._parts])

    def quadratic_table(self, matrix: Array) -> Tables:
        """The table for ``phi^T C phi``."""
        return np.concatenate([part.quadratic_table(matrix).ravel() for part in self._parts])

    def products_of_sums(self, table: Tables, weights: Array) -> Array:
        """The sums ``sum_n w_n phi_m phi_n^T c``, ``[M]``, from the table of w."""
        products = (part.products_of_sums(own, weights) for part, own in self._each(table))
        return sum(products, np.zeros([]))

    def at(self, X: Array, tables: Tables) -> Array:
        """The sums of waves of tables ``[K, ...]`` at rows, ``[K, n]``."""
        values = np.zeros([len(tables), len(X)])
        for (part, own), rows in zip(self._each(tables), self._rows.kinds(X), strict=True):
            if len(rows):
                values[:, rows] = part.at(self._rows.arrays(X[rows])[0], own)
        return values

    def _each(self, tables: Tables) -> Iterator[tuple[RowTables, Tables]]:
        """The tables of each functional, and their places in tables ``[..., total]``."""
        vectors = np.split(tables, self._ends[:-1], axis=-1)
        for part, vector in zip(self._parts, vectors, strict=True):
            yield part, vector.reshape(*vector.shape[:-1], *part.shape)


class AreaTables:
    """Sums over rows that are weighted sums of f over regions: a number for each region.

    :param areas: The functional.
    :param features: The features of the regions, ``[M, R]``.
    """

    def __init__(self, areas: Areas, features: Array) -> None:
        self._areas, self._features = areas, features
        self.shape = (features.shape[1],)

    def table(self, X: Array, strengths: Array) -> Tables:
        """The sums of weights over the rows of each region, ``[K, R]``."""
        regions, (count,) = self._regions(X), self.shape
        sums = [np.bincount(regions, weights, count) for weights in strengths.T]
        return np.array(sums, np.complex128)

    def gram(self, table: Tables) -> Array:
        """The sums ``sum_n w_n phi_m phi_m'``, ``[M, M]``."""
        gram: Array = (self._features * table.real) @ self._features.T
        return gram

    def products(self, tables: Sequence[Tables] | Tables) -> Array:
        """The sums ``sum_n w_n phi_m``, ``[M, K]``, from K tables."""
        products: Array = self._features @ np.asarray(tables).real.T
        return products

    def linear_table(self, weights: Array) -> Tables:
        """The numbers ``c^T phi`` of each region."""
        numbers: Array = self._features.T @ weights
        return numbers.astype(np.complex128)

    def quadratic_table(self, matrix: Array) -> Tables:
        """The numbers ``phi^T C phi`` of each region."""
        numbers: Array = np.einsum("mr,mr->r", self._features, matrix @ self._features)
        return numbers.astype(np.complex128)

    def products_of_sums(self, table: Tables, weights: Array) -> Array:
        """The sums ``sum_n w_n phi_m phi_n^T c``, ``[M]``, from the table of w."""
        return self.products([table * self.linear_table(weights)])[:, 0]

    def at(self, X: Array, tables: Tables) -> Array:
        """The numbers of the rows' regions, ``[K, n]``."""
        return tables.real[:, self._regions(X)]

    def _regions(self, X: Array) -> IntArray:
        self._areas.validate("X", X, X)
        regions: IntArray = X[:, 0].astype(np.int64)
        return regions


def acted_tables(
    waves: Sequence[BoxWaves | None],
    inducing_variable: InducingVariables,
    prior: Kernel,
    rows: FunctionalRows,
) -> ActedTables:
    """The tables of rows.

    :param waves: The features under each functional; None for sums over regions.
    """
    dtype, size = gpflow.default_float(), int(inducing_variable.num_inducing)

    def features(inputs: tf.Tensor) -> tf.Tensor:
        return tf.linalg.matrix_transpose(Kuf_in_domain(inducing_variable, prior, inputs))

    parts: list[RowTables] = []
    for box, functional in zip(waves, rows.functionals, strict=True):
        if box is not None:
            parts.append(WaveTables(box))
        else:
            ((weight, areas),) = functional.terms
            assert isinstance(areas, Areas)
            of_regions = weight * areas.of_regions(features, size, dtype).numpy().T
            parts.append(AreaTables(areas, of_regions.astype(np.float64)))
    return ActedTables(parts, rows)


def is_of_regions(functional: LinearFunctional) -> bool:
    """Whether a functional is a multiple of an :class:`.Areas`."""
    return [type(part) for _, part in functional.terms] == [Areas]


def acted_features(
    waves: BoxWaves, degrees: IntArray | None, functional: LinearFunctional
) -> BoxWaves | None:
    """The features under a functional, as combinations of waves. None if a feature would combine
    waves that are sines in different columns, or if factors differ between rows.

    :param degrees: The degrees of the features on the globe, ``[M]``; None if they have none.
    """
    plain = waves.as_combined()
    functions, total = plain.functions, scipy.sparse.csr_array(plain.combined.shape)
    for weight, part in functional.terms:
        of_features = np.full(plain.num_features, weight)
        if isinstance(part, ByDegree):
            if degrees is None:
                return None
            of_features *= part.of_degrees(degrees)
            part = Value()
        seen = part.seen_by(plain.columns)
        if seen is None:  # zero
            continue
        acted = acted_waves(seen, plain.functions, plain.periods)
        if acted is None or (total.nnz and not np.array_equal(functions, acted.functions)):
            return None
        functions = acted.functions
        diagonals = map(scipy.sparse.diags_array, (of_features, acted.factors))
        total = total + next(diagonals) @ plain.combined @ next(diagonals)
        total.eliminate_zeros()
    return plain._replace(functions=functions, combined=total)
