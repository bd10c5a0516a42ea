"""Sums of waves of a box, read from small tables into which nonuniform FFTs sum the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables

from .._arguments import Array, IntArray
from .._tracing import compiled, numpy_function
from ..core.family import Block
from ..core.pairs import structure_of
from ..core.structures import FeatureStructure
from ..linalg.wave_tables import MOST_COLUMNS, BoxWaves, Tables, WaveTables
from .acted_waves import ActedTables, RowTables, acted_features, acted_tables, is_of_regions
from .dense import DenseSums
from .protocol import Latents, Q, Sums, Tensors
from .whitened_waves import WhitenedWaves

FEWEST = (16, 64, 128)
"""The least numbers of waves in one, two and three columns for which nonuniform FFTs are faster."""

_LEAST_VARIANCE = 1e-12
"""The least share of the largest predicted variance; a smaller variance is rounding."""


class Waves(FeatureStructure):
    """Features that are waves of a box, or combinations of a few waves.

    :ivar waves: The waves.
    :ivar degrees: The degree of each feature on the globe, ``[M]``; None if features have none.
    """

    def __init__(self, waves: BoxWaves, degrees: IntArray | None = None) -> None:
        self.waves, self.size, self.degrees = waves, waves.num_features, degrees

    @property
    def is_small(self) -> bool:
        """Whether dense sums take less time."""
        return self.size < FEWEST[len(self.waves.columns) - 1]

    def sums(self, features: Any) -> WaveSums | None:
        return None if self.is_small else WaveSums(features, WaveTables(self.waves))

    def acted(self, inducing_variable: InducingVariables, kernel: Any) -> ActedWaves | None:
        """A table for each functional; None if a functional has none."""
        if self.is_small:
            return None
        others = [part for part in kernel.functionals if not is_of_regions(part)]
        acted = {part: acted_features(self.waves, self.degrees, part) for part in others}
        if None in acted.values():
            return None
        waves = [acted.get(part) for part in kernel.functionals]
        return ActedWaves(waves, inducing_variable, kernel)

    def whitened_sums(self, features: Any, weights: Any) -> WhitenedWaves:
        return WhitenedWaves(features, weights, self.waves)

    def in_sum(self, blocks: Sequence[Block], number: int) -> Waves | None:
        """The waves of all blocks, if they are waves of one box; None otherwise."""
        parts = [structure_of(*block) for block in blocks]
        waves = [part.waves for part in parts if isinstance(part, Waves)]
        if len(waves) < len(parts) or not all(map(waves[0].is_of_box, waves)):
            return None
        degrees = [part.degrees for part in parts if isinstance(part, Waves)]
        known = [part for part in degrees if part is not None]
        all_known = len(known) == len(degrees)
        return Waves(waves[0].with_others(waves[1:]), np.concatenate(known) if all_known else None)

    def in_product(
        self, others: Sequence[FeatureStructure], members: IntArray
    ) -> FeatureStructure | None:
        """The waves of the box of all columns, if the factors are waves of different columns."""
        factors = [part.waves for part in (self, *others) if isinstance(part, Waves)]
        columns = [column for part in factors for column in part.columns.tolist()]
        if len(factors) <= len(others) or any(part.combined is not None for part in factors):
            return None
        if not len(set(columns)) == len(columns) <= MOST_COLUMNS:
            return None
        taken = zip(factors, members.T, strict=True)
        return Waves(
            BoxWaves(
                np.array(columns),
                np.concatenate([part.lower for part in factors]),
                np.concatenate([part.periods for part in factors]),
                np.concatenate([part.functions[places] for part, places in taken], axis=1),
            )
        )


class ActedWaves(FeatureStructure):
    """Features of waves in rows that are linear functionals of f.

    :param waves: The features under each functional; None for sums over regions.
    :param kernel: The :class:`interdomain.kernels.Functional` kernel.
    """

    def __init__(
        self, waves: list[BoxWaves | None], inducing_variable: InducingVariables, kernel: Any
    ) -> None:
        self._parts = waves, inducing_variable, kernel.prior, kernel.rows
        self.size = int(inducing_variable.num_inducing)

    def sums(self, features: Any) -> WaveSums:
        return WaveSums(features, self.tables())

    def tables(self) -> ActedTables:
        """The tables of the functionals of rows."""
        return acted_tables(*self._parts)


class WaveSums(DenseSums):
    """Sums of products that are read from small tables, which are summed over batches of rows.

    :param tables: The tables of the waves.
    """

    rows_at_once = 2**17
    """A table has a large cost that does not depend on the rows: fewer rows at once take longer."""

    def __init__(self, features: Any, tables: RowTables) -> None:
        super().__init__(features)
        self.tables = tables
        self._targets = compiled(features.target_sums, input_signature=features.signature())

    def variables(self) -> tuple[tf.Variable, ...]:
        """The variables of the targets. Waves depend on no parameter, so they are not traced."""
        return tuple(self._targets.get_concrete_function().graph.variables)

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        rows = tf.constant(X, gpflow.default_float())
        targets, sums = self.features.target_sums(rows, Y, *more)
        weights = more[0] if more else np.ones([len(X), 1])
        strengths = [targets] if self.features.mean.has_ones else [targets, weights]
        return {"tables": self.tables.table(X, tf.concat(strengths, axis=1).numpy()), **sums}

    def total(self, added: Mapping[str, Array]) -> dict[str, Array]:
        others = dict(added)
        tables: Any = others.pop("tables")  # the last one is that of the weights
        targets = tables if self.features.mean.has_ones else tables[:-1]
        sums = {"gram": self.tables.gram(tables[-1]), "products": self.tables.products(targets)}
        return sums | others

    rows = Sums.rows

    def site_batch(self, rows: Any, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        """The tables, and the products of the mean function's columns with each other and with the
        shifts, as a vector for each latent GP."""
        latents = len(precisions)
        columns = tf.cast(self.features.mean.columns(rows), tf.float64).numpy()
        weighted = precisions[:, None] * columns.T
        ones = [] if self.features.mean.has_ones else [np.ones_like(precisions[0])]
        strengths = np.concatenate([*(precisions[:, None] * [*columns.T, *ones]), shifts])
        tables = self.tables.table(rows.numpy(), strengths.T)
        latent_tables = [part.reshape(latents, -1) for part in np.split(tables, [-latents])]
        others = (weighted @ columns).reshape(latents, -1), shifts @ columns
        pairs = zip(latent_tables, others, strict=True)
        precision_sums, shift_sums = (np.concatenate(pair, axis=1) for pair in pairs)
        return precision_sums, shift_sums

    def site_total(self, added: Mapping[str, Array], prefix: str = "") -> tuple[Array, Array]:
        return (
            np.stack([*map(self._products, added[f"{prefix}precisions"])]),
            np.stack([*map(self._shifts, added[f"{prefix}shifts"])], axis=1),
        )

    def _products(self, vector: Tables) -> Array:
        """The products of features and columns of the mean function of a latent GP, ``[K, K]``."""
        size = self.features.num_stacked - self.features.num_inducing
        first, corner = vector[: -(size**2)], vector[-(size**2) :].real
        tables = first.reshape(-1, *self.tables.shape)
        gram, border = self.tables.gram(tables[-1]), self.tables.products(tables[:size])
        return np.block([[gram, border], [border.T, corner.reshape(size, size)]])

    def _shifts(self, vector: Tables) -> Array:
        """The products of features and columns with the shifts of a latent GP, ``[K]``."""
        size = int(np.prod(self.tables.shape))
        table = vector[:size].reshape(1, *self.tables.shape)
        return np.concatenate([self.tables.products(table)[:, 0], vector[size:].real])

    def q(self, latents: Latents) -> WaveQ:
        return WaveQ(self, latents)

    def predictions_of_many(self, latents: Latents) -> Callable[..., Tensors]:
        q = self.q(latents)
        _ = q.tables  # computed now: the function may be called in a graph
        return q.predict_f

    def moments(self, q: Q, X: tf.Tensor) -> tuple[Any, tf.Tensor, tf.Tensor, tf.Tensor]:
        rows, terms = self.rows(X)
        return rows, terms, *cast(WaveQ, q).at(X, terms)


class WaveQ(Q):
    """The posterior of the weights of waves. The mean and variance of f are sums of waves, which
    take O(M^2) once and O(log M) a row."""

    @cached_property
    def tables(self) -> Tables:
        """The tables of the mean and of the variance of each latent GP, without the prior variance
        that the features do not explain."""
        sums = cast(WaveSums, self.sums)
        prior = sums.prior()
        mean, *roots = (
            prior.solve(part, adjoint=True).numpy()
            for part in (self.whitened[0], *self.whitened[1])
        )
        products = [root @ root.T for root in roots]
        incomplete = sums.features.incomplete
        if np.any(incomplete):
            inverse = prior.solve(tf.eye(len(mean), dtype=tf.float64)).numpy()
            explained = (inverse.T * incomplete) @ inverse
            products = [product - explained for product in products]
        variances = map(sums.tables.quadratic_table, products)
        return np.stack([*map(sums.tables.linear_table, mean.T), *variances])

    def predict_f(
        self, Xnew: tf.Tensor, full_cov: bool = False, full_output_cov: bool = False
    ) -> Tensors:
        """The mean and variance of f at rows, ``[n, P]``, without gradients."""
        assert not (full_cov or full_output_cov)
        X = tf.convert_to_tensor(Xnew, gpflow.default_float())
        return self.at(X, self.sums.features.terms_of(X))

    def at(self, X: tf.Tensor, terms: tf.Tensor) -> Tensors:
        """The mean and variance of f at rows with known terms of the prior variance, ``[T, n]``."""
        features, tables, number = self.sums.features, self.tables, self.whitened[0].shape[1]
        rows = cast(WaveSums, self.sums).tables
        both = numpy_function(lambda X: rows.at(X, tables).T, [X], tf.float64)
        both = tf.cast(tf.ensure_shape(both, [None, len(tables)]), X.dtype)
        mean, variance = both[:, :number], both[:, number:]
        left = tf.linalg.matvec(terms, features.diagonal_factors(), transpose_a=True)
        variance = tf.broadcast_to(variance + left[:, None], tf.shape(mean))
        variance = tf.maximum(variance, _LEAST_VARIANCE * tf.reduce_max(variance))
        return mean + features.mean_function(X), variance
