"""Functions drawn from models that hold the weights of their features, by draws of the weights."""

from __future__ import annotations

from dataclasses import dataclass

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel
from gpflow.mean_functions import MeanFunction

from ..core.latents import LatentGPs
from ..posteriors.weights import WeightedFeatures, WeightsPosterior
from .base import Draws


@dataclass(frozen=True)
class WeightedFunctions:
    """Functions that are weighted sums of features.

    :ivar latents: The L latent GPs.
    :ivar features: The features.
    :ivar weights: The weights of the features, ``[S, M, L]``.
    """

    latents: LatentGPs
    features: WeightedFeatures
    weights: tf.Tensor

    @property
    def entries_per_row(self) -> int:
        """The number of values in memory for each row of X."""
        return self.features.entries_per_row(self.weights)

    def __call__(self, X: tf.Tensor) -> tf.Tensor:
        """The values ``[S, N, L]`` at X ``[N, D]``."""
        return tf.cast(self.features.values(self.weights, X), X.dtype)


def functions_of_weights(
    posterior: WeightsPosterior, draws: Draws
) -> tuple[Kernel, MeanFunction | None, list[WeightedFunctions]]:
    """Functions drawn from a posterior, with its kernel and mean function.

    :raises ValueError: If the features do not represent the prior completely.
    """
    weights = tf.constant(posterior.draw_weights(draws.rng, draws.num_samples))
    parts = posterior.kernel, posterior.mean_function, posterior.X_data
    kernel, mean_function, inducing_variable = gpflow.utilities.deepcopy(parts)
    features = posterior.weighted_features(inducing_variable, kernel)
    latents = LatentGPs(kernel, (inducing_variable,))
    return kernel, mean_function, [WeightedFunctions(latents, features, weights)]
