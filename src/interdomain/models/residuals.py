"""What features that a collapsed model does not have would say about its residuals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import gpflow
import numpy as np
import tensorflow as tf

from .._tracing import compiled
from ..covariances import Kuu_operator
from ..covariances.domains import Kuf_in_domain
from ..covariances.pairs import Block
from ..sphere._typing import Array
from ..streaming.contributions import Contributions
from ..streaming.provider import StatisticsProvider

_BATCH_ENTRIES = 2**22
"""Numbers in the features of the rows that are taken at a time."""


class ResidualSums(NamedTuple):
    """Of features divided by their standard deviations in the prior, over all rows.

    :ivar products: With the residuals of each column of Y, ``[C, P]``.
    :ivar squares: Their squares, ``[C]``.
    """

    products: Array
    squares: Array

    def gains(self, noise_variance: float) -> Array:
        """By how much each would raise the log marginal likelihood, alone and with the others'
        weights as they are, ``[C]``."""
        total = self.squares + noise_variance
        fit = np.sum(np.square(self.products), axis=1) / (noise_variance * total)
        gains: Array = fit - self.products.shape[1] * np.log(total / noise_variance)
        return gains / 2


def residual_sums(
    provider: StatisticsProvider, features: Contributions, weights: tf.Tensor, block: Block
) -> ResidualSums:
    """
    :param provider: The rows.
    :param features: Of the model, whose mean is ``m(X) + Kfu weights``.
    :param weights: ``[M, P]``.
    :param block: The other features.
    """
    inducing_variable, kernel = block
    precisions = Kuu_operator(inducing_variable, kernel).diag_part()
    num_features = features.num_inducing + precisions.shape[0]
    num_rows = max(_BATCH_ENTRIES // num_features, 1)
    dtype = gpflow.default_float()

    def of_rows(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        own = Kuf_in_domain(features.inducing_variable, features.kernel, X)
        residuals = Y - features.mean_function(X) - tf.matmul(own, weights, transpose_a=True)
        others = Kuf_in_domain(inducing_variable, kernel, X)
        return tf.matmul(others, residuals), tf.reduce_sum(tf.square(others), axis=1)

    signature = [
        tf.TensorSpec([None, features.num_columns], dtype),
        tf.TensorSpec([None, features.num_outputs], dtype),
    ]
    traced = compiled(of_rows, input_signature=signature)

    def of_batch(X: Array, Y: Array) -> Mapping[str, Array]:
        products = np.zeros((precisions.shape[0], Y.shape[1]))
        squares = np.zeros(precisions.shape[0])
        for start in range(0, len(X), num_rows):
            rows = slice(start, start + num_rows)
            found = traced(tf.constant(X[rows], dtype), tf.constant(Y[rows], dtype))
            products += found[0].numpy()
            squares += found[1].numpy()
        return {"products": products, "squares": squares}

    sums = provider.sums_of(of_batch)
    variances = 1 / precisions.numpy().astype(np.float64)
    return ResidualSums(sums["products"] * np.sqrt(variances)[:, None], sums["squares"] * variances)
