"""Sums over rows of splines on a grid and of dense features, by their nonzero numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.posteriors import AbstractPosterior, PrecomputeCacheType

from .._arguments import Array
from ..linalg import StructuredOperator
from ..linalg.arrow import Arrow
from ..linalg.banded import KroneckerBanded
from .protocol import Latents, Sums, Tensors
from .spline_posterior import SplinePosterior
from .spline_q import SplineCollapsed, SplineQ

if TYPE_CHECKING:
    from .splines import Splines


class SplineSums(Sums):
    """Sums of products as the vector of an :class:`.Arrow`. Like dense sums, they can be added,
    saved and used for the sites of a model.

    :ivar splines: The features.
    """

    def __init__(self, features: Any, splines: Splines) -> None:
        super().__init__(features)
        self.splines = self.structure = splines
        self.rows_of_a_prediction = splines.rows_at_once
        self.rows_at_once = splines.rows_of_a_batch

    def require_fixed(self, trainable: Mapping[str, Any]) -> None:
        if trainable:
            is_acted = hasattr(self.features.kernel, "acting_family")
            more = ", or make the prior of Functional of finite rank" * is_acted
            raise ValueError(
                f"inducing_variable: found splines beside features that depend on "
                f"{', '.join(trainable)}, trainable, and sums of splines have no gradients; freeze "
                f"these with gpflow.set_trainable(parameter, False){more}."
            )

    def check_spacing(self) -> None:
        self.splines.warn_of_spacing(self.features.incomplete)

    def batch(self, X: Array, Y: Array, *more: Array) -> Mapping[str, Any]:
        rows = tf.constant(X, gpflow.default_float())
        targets, sums = self.features.target_sums(rows, Y, *more)
        weights = more[0] if more else np.ones([len(X), 1])
        parts = weights, np.zeros([len(X), 0]), targets.numpy()
        (gram,), products = self.splines.products(rows, *parts)
        return {"gram": gram, "products": products, **sums}

    def site_sums(self, X: tf.Tensor, precisions: Any, shifts: Any) -> tuple[Array, Array]:
        """The sums have no gradients."""
        columns = tf.cast(self.features.mean.columns(X), tf.float64).numpy()
        weights, shifts = (np.transpose(part) for part in (precisions, shifts))
        return self.splines.products(X, weights, columns, shifts)

    def gram_shape(self, num_columns: int) -> tuple[int, ...]:
        return (sum(int(np.prod(part.shape)) for part in self._empty(num_columns)),)

    def _empty(self, num_columns: int) -> Arrow:
        """The sum over no rows."""
        others = len(self.splines.order) - self.splines.grid.size
        return Arrow.zeros(self.splines.grid.dissection.stencil_shape, others + num_columns)

    def border(self, gram: tf.Tensor, num_columns: int) -> Tensors:
        splines, arrow = self.splines, self._empty(num_columns).unpacked(gram)
        size = len(splines.order) - splines.grid.size
        with_features = tf.concat([arrow.border[:, size:], arrow.corner[:size, size:]], axis=0)
        return tf.gather(with_features, np.argsort(splines.order)), arrow.corner[size:, size:]

    def prior_gram(self, num_columns: int) -> Array:
        splines, others = self.prior()
        corner = np.pad(others.to_dense(), (0, num_columns))
        return Arrow.without_border(splines.stencil().numpy(), corner).packed()

    def prior(self) -> tuple[KroneckerBanded, StructuredOperator]:
        """Kuu of the splines, and Kuu of the other features."""
        return self.splines.Kuu()

    def finish(
        self,
        prior: tuple[KroneckerBanded, StructuredOperator],
        gram: tf.Tensor,
        columns: tf.Tensor,
        *,
        num_columns: int = 0,
        gram_gradient: bool = False,
    ) -> SplineCollapsed:
        splines, arrow = self.splines, self._empty(num_columns).unpacked(gram)
        size = len(splines.order) - splines.grid.size
        arrow = Arrow(arrow.stencil, arrow.border[:, :size], arrow.corner[:size, :size])
        columns = tf.gather(columns, splines.order)
        return SplineCollapsed(self, *prior, arrow, columns, gram_gradient)

    def q(self, latents: Latents) -> SplineQ:
        return SplineQ(self, latents)

    def posterior(
        self,
        latents: Callable[[], Latents],
        precompute_cache: PrecomputeCacheType | str | None,
    ) -> AbstractPosterior:
        return SplinePosterior(self, latents, precompute_cache)
