"""The sums over sites of rows whose features are waves of a box, by nonuniform FFTs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf

from ..._arguments import Array
from ...linalg.wave_tables import Tables, WaveTables
from ...sums.statistics import ROWS_AT_ONCE, total_over
from ...sums.waves import WavePosterior
from .row_sites import RowSites, SiteContributions

_ROWS_OF_LIKELIHOOD = 8_192
"""Rows whose expectations are taken at a time: quadrature has many numbers of each."""


class SitesOfWaves(SiteContributions):
    """The sites of rows whose features are waves of a box.

    Of some rows "precisions" and "shifts" are tables, with what the columns of the mean function
    have in common with each other and the sites: vectors, of which :meth:`looked_up` makes sums of
    products.
    """

    @property
    def rows_at_once(self) -> int:
        return ROWS_AT_ONCE

    def evaluate(self, X: Array, Y: Array, q: WavePosterior) -> RowSites:
        rows = tf.constant(X, gpflow.default_float())
        mean, variance = q(rows)
        parts = []
        for start in range(0, len(X), _ROWS_OF_LIKELIHOOD):
            some = slice(start, start + _ROWS_OF_LIKELIHOOD)
            parts.append(super().evaluate(X[some], Y[some], (mean[some], variance[some])))
        _, *of_rows, sums = zip(*parts, strict=True)
        arrays = [np.concatenate(part, axis=1) for part in of_rows]
        return RowSites._make([rows, *arrays, total_over(zip(sums, strict=True), dict)])

    def _moments(self, X: tf.Tensor, q: tuple[tf.Tensor, tf.Tensor]) -> tuple[Any, ...]:
        offset = tf.broadcast_to(self.features.mean.rest(X), tf.shape(q[0]))
        return X, self.features.terms_of(X), q[0], offset, q[1]

    def _rows_of(self, X: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return X, self.features.terms_of(X)

    def sums_of(self, rows: tf.Tensor, precisions: Array, shifts: Array) -> tuple[Array, Array]:
        latents = len(precisions)
        columns = tf.cast(self.features.mean.columns(rows), tf.float64).numpy()
        weighted = precisions[:, None] * columns.T
        strengths = np.concatenate([*weighted, shifts])
        tables = self._waves.table(rows.numpy(), strengths.T)
        of_latents = [part.reshape(latents, -1) for part in np.split(tables, [-latents])]
        others = (weighted @ columns).reshape(latents, -1), shifts @ columns
        pairs = zip(of_latents, others, strict=True)
        of_precisions, of_shifts = (np.concatenate(pair, axis=1) for pair in pairs)
        return of_precisions, of_shifts

    def looked_up(self, sums: Mapping[str, Array]) -> dict[str, Array]:
        found = dict(sums)
        for prefix in ("", "negative_"):
            if f"{prefix}precisions" in sums:
                of_latents = map(self._products, sums[f"{prefix}precisions"])
                found[f"{prefix}precisions"] = np.stack(list(of_latents))
                of_latents = map(self._shifts, sums[f"{prefix}shifts"])
                found[f"{prefix}shifts"] = np.stack(list(of_latents), axis=1)
        return found

    @property
    def _waves(self) -> WaveTables:
        assert self.features.tables is not None
        return self.features.tables

    def _products(self, of_latent: Tables) -> Array:
        """The sums of beta and products of features and columns of the mean, ``[K, K]``."""
        size = self.features.num_stacked - self.features.num_inducing
        first, corner = of_latent[: -(size**2)], of_latent[-(size**2) :].real
        tables = first.reshape(size, *self._waves.shape)
        gram, border = self._waves.gram(tables[-1]), self._waves.products(tables)
        return np.block([[gram, border], [border.T, corner.reshape(size, size)]])

    def _shifts(self, of_latent: Tables) -> Array:
        """The sums of lambda and these, ``[K]``."""
        size = int(np.prod(self._waves.shape))
        table = of_latent[:size].reshape(1, *self._waves.shape)
        return np.concatenate([self._waves.products(table)[:, 0], of_latent[size:].real])
