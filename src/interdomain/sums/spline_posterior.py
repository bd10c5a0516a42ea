"""Predictions and posterior functions of models whose features are splines on a grid."""

from __future__ import annotations

import tensorflow as tf

from ..linalg.spline_grid import SplineGrid
from .sparse_posterior import SparsePosterior


class SplinePosterior(SparsePosterior):
    """The posterior of splines: see :class:`.SparsePosterior`."""

    def _of_sparse(
        self, tensors: tuple[tf.Tensor, ...], X: tf.Tensor, *, with_variance: bool
    ) -> tf.Tensor:
        means, stencils, borders, _ = tensors
        splines, (latents, size, count) = self._sums.structure, map(int, borders.shape)

        def of_splines(grid: SplineGrid, inputs: tf.Tensor) -> tf.Tensor:
            numbers, values = grid(inputs)
            found = [tf.einsum("nq,nqp->np", values, tf.gather(means[:size], numbers))]
            if with_variance:
                found.append(grid.quadratic(stencils, numbers, values))
                if count:
                    products = tf.gather(borders, numbers, axis=1)
                    products = tf.einsum("nq,lnqb->nlb", values, products)
                    found.append(tf.reshape(products, [-1, latents * count]))
            return tf.concat(found, axis=1)

        return splines.by_kind(X, of_splines)
