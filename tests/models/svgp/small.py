"""Small models, and likelihoods that users write, for tests of targets."""

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Gaussian

from interdomain.models import DualSVGP

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, [12, 1])
Z = np.linspace(-1, 1, 4)[:, None]
VALUES = np.sin(3 * X)


def kernel() -> Any:
    made = gpflow.kernels.Matern52(variance=1.5, lengthscales=0.5)
    gpflow.set_trainable(made, False)
    return made


def points() -> Any:
    made = gpflow.inducing_variables.InducingPoints(Z.copy())
    gpflow.set_trainable(made, False)
    return made


def svgp(likelihood: Any, num_latent_gps: int = 1) -> Any:
    return gpflow.models.SVGP(
        kernel(), likelihood, points(), num_latent_gps=num_latent_gps, num_data=len(X)
    )


def collapsed(likelihood: Any, Y: Any, **arguments: Any) -> DualSVGP:
    return DualSVGP((X, Y), kernel(), likelihood, points(), progress=False, **arguments)


MISSING = -999.0


class WithoutMissing(Gaussian):
    """Gaussian, where targets of -999 say nothing (GPflow #671)."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> Any:
        noise = self._variance(X)
        each = -0.5 * (tf.math.log(2 * np.pi * noise) + ((Y - Fmu) ** 2 + Fvar) / noise)
        return tf.reduce_sum(tf.where(tf.equal(Y, MISSING), tf.zeros_like(each), each), axis=-1)


def with_method_replaced() -> Gaussian:
    likelihood = Gaussian(0.2)
    likelihood._variational_expectations = WithoutMissing._variational_expectations
    return likelihood


def by_source() -> Any:
    return gpflow.likelihoods.SwitchedLikelihood([Gaussian(0.05), Gaussian(0.4)])


class KnownNoise(gpflow.likelihoods.QuadratureLikelihood):
    """Values, and beside each the variance of its noise (GPflow's "varying noise")."""

    def __init__(self, latent_dim: int | None = 1, observation_dim: int | None = 2) -> None:
        super().__init__(None, latent_dim, observation_dim)

    @property
    def _quadrature_dim(self) -> int:
        return 1

    def _log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        return gpflow.logdensities.gaussian(Y[..., 0], F[..., 0], Y[..., 1])
