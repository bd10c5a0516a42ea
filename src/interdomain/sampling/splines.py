"""Functions drawn from models whose features are splines: one solve for each."""

from __future__ import annotations

from dataclasses import dataclass

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..core.latents import LatentGPs
from ..regression.compact import CompactFeatures, compact_features
from ..regression.compact_posterior import CompactPosterior
from .base import Draws


@dataclass(frozen=True)
class SplineFunctions:
    """Functions that are sums of splines and of few other features.

    :ivar latents: The L latent GPs.
    :ivar weights: The weights of the features, splines first, ``[S, M + B, L]``.
    """

    latents: LatentGPs
    features: CompactFeatures
    weights: tf.Tensor

    @property
    def entries_per_row(self) -> int:
        """How many numbers are held for each row of X."""
        samples, size, latents = map(int, self.weights.shape)
        grid = self.features.grid
        splines = int((grid.degree + 1) ** len(grid.shape))
        return samples * latents * (splines + size - grid.size)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """``[S, N, L]`` at X ``[N, D]``."""
        X, size = self.features.grid.in_box(X), self.features.grid.size
        numbers, values = self.features.grid(X)
        of_rows = tf.gather(self.weights[:, :size], numbers, axis=1)
        found = tf.einsum("nq,snql->snl", values, of_rows)
        found += tf.einsum("nb,sbl->snl", self.features.others(X), self.weights[:, size:])
        return tf.cast(found, X.dtype)


def functions_of_splines(
    posterior: CompactPosterior, draws: Draws
) -> tuple[Kernel, MeanFunction | None, list[SplineFunctions]]:
    """Functions of a posterior, with its kernel and mean function.

    :raises ValueError: If the prior does not end with the features.
    """
    q = posterior.q()
    if np.any(q.incomplete):
        raise ValueError(
            "model: no function is drawn of a prior that does not end with its splines; make the "
            "kernel as FiniteRank(kernel, splines)."
        )
    parts = posterior.kernel, posterior.mean_function, posterior.X_data
    kernel, mean_function, inducing_variable = gpflow.utilities.deepcopy(parts)
    features = compact_features(inducing_variable, kernel)
    assert features is not None
    weights = tf.constant(q.draw(draws.rng, draws.num_samples))
    latents = LatentGPs(kernel, (inducing_variable,))
    return kernel, mean_function, [SplineFunctions(latents, features, weights)]
