"""Pairs of inducing variables for an OrthogonalSVGP, and the stock SVGP that it is to equal."""

from collections.abc import Callable
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import Shape
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from interdomain.covariances import Kvu
from interdomain.inducing_variables import (
    ActivationFeatures,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import SphericalMatern52
from interdomain.models import OrthogonalSVGP

from .cases import BlockSVGP, make_q, matern, options_of, points

Triple = tuple[Kernel, InducingVariables, InducingVariables]


def zonal() -> SphericalMatern52:
    return SphericalMatern52(variance=1.3, weight_variances=[0.5, 1.0, 2.0], lengthscale=0.9)


def units(num_units: int, activation: str, seed: int) -> ActivationFeatures:
    return ActivationFeatures.random(3, num_units, activation, 4, seed=seed)


def sum_points() -> Triple:
    """A base of a diagonal and a dense block: its square root is block-diagonal."""
    first = zonal()
    base = SumInducingVariables([SphericalHarmonics(4, [0, 1]), InducingPoints(points(3))])
    return first + matern(), base, InducingPoints(points(4, seed=2))


BY_NAME: dict[str, Callable[[], Triple]] = {
    "points-points": lambda: (
        matern(lengthscales=[1.0, 1.5, 0.7]),
        InducingPoints(points(5)),
        InducingPoints(points(4, seed=1)),
    ),
    "harmonics-points": lambda: (
        zonal(),
        SphericalHarmonics(4, [0, 1, 3]),
        InducingPoints(points(4)),
    ),
    "harmonics-activations": lambda: (
        zonal(),
        SphericalHarmonics(4, [0, 2]),
        units(3, "softplus", 1),
    ),
    "activations-harmonics": lambda: (zonal(), units(4, "relu", 2), SphericalHarmonics(4, [1, 3])),
    "sum-points": sum_points,
    # Kuu is diagonal plus low rank.
    "interval-points": lambda: (
        matern(active_dims=[1]),
        VariationalFourierFeatures(-3.0, 3.5, 3),
        InducingPoints(points(3)),
    ),
}
"""Each makes a kernel, a base and an orthogonal inducing variable for three columns."""


class Blocks(InducingVariables):
    """The oracle's inducing variable: u and v', which are independent a priori."""

    def __init__(self, base: InducingVariables, orthogonal: InducingVariables) -> None:
        super().__init__()
        self.base, self.orthogonal = base, orthogonal

    @property
    def num_inducing(self) -> int:
        return int(self.base.num_inducing) + int(self.orthogonal.num_inducing)

    @property
    def shape(self) -> Shape:
        return (self.num_inducing, None, 1)


def residuals(blocks: Blocks, kernel: Kernel, cov_v: tf.Tensor, cov_u: tf.Tensor) -> tf.Tensor:
    """``cov_v - Kvu Kuu^{-1} cov_u`` by a general solver."""
    Cvu = Kvu(blocks.orthogonal, blocks.base, kernel)
    return cov_v - Cvu @ tf.linalg.solve(Kuu(blocks.base, kernel), cov_u)


@Kuu.register(Blocks, Kernel)
def kuu_blocks(blocks: Blocks, kernel: Kernel, *, jitter: float = 0.0) -> tf.Tensor:
    cov_u = tf.transpose(Kvu(blocks.orthogonal, blocks.base, kernel))
    residual = residuals(blocks, kernel, Kuu(blocks.orthogonal, kernel), cov_u)
    above = tf.concat([Kuu(blocks.base, kernel), tf.zeros_like(cov_u)], axis=1)
    dense = tf.concat([above, tf.concat([tf.zeros_like(tf.transpose(cov_u)), residual], 1)], axis=0)
    return dense + jitter * tf.eye(dense.shape[0], dtype=dense.dtype)


@Kuf.register(Blocks, Kernel, object)
def kuf_blocks(blocks: Blocks, kernel: Kernel, Xnew: TensorType) -> tf.Tensor:
    cov_u = Kuf(blocks.base, kernel, Xnew)
    cov_v = Kuf(blocks.orthogonal, kernel, Xnew)
    return tf.concat([cov_u, residuals(blocks, kernel, cov_v, cov_u)], axis=0)


def make_orthogonal(
    build: Callable[[], Triple], *, num_latent_gps: int = 1, random_q: bool = True, **options: Any
) -> OrthogonalSVGP:
    kernel, base, orthogonal = build()
    if random_q:
        sizes = [int(part.num_inducing) for part in (base, orthogonal)]
        forms = options.get("q_diag", False), options.get("q_shared", False)
        means, roots = make_q(sizes, num_latent_gps, *forms)
        options |= {"q_mu": means[0], "q_mu_orthogonal": means[1], "q_sqrt": roots[0]}
        if options.get("variant") != "odvgp":
            options["q_sqrt_orthogonal"] = roots[1]
    likelihood, options = gpflow.likelihoods.Gaussian(0.2), options_of(num_latent_gps, options)
    return OrthogonalSVGP(kernel, likelihood, base, orthogonal, **options)


def block_oracle(model: OrthogonalSVGP) -> BlockSVGP:
    """With "odvgp" the root of q(v') is that of the prior, and full."""
    blocks = Blocks(model.inducing_variable, model.orthogonal_inducing_variable)

    def q() -> list[tuple[Any, Any]]:
        if model.q_sqrt_orthogonal is not None:
            return model.variational_parameters
        mean, root = model.variational_parameters[0]
        full = tf.linalg.diag(tf.transpose(root)) if len(root.shape) == 2 else root
        size = mean.shape[0]
        covariance = kuu_blocks(blocks, model.kernel)[size:, size:]
        prior = tf.eye(len(covariance), dtype=covariance.dtype)
        prior = prior if model.whiten else tf.linalg.cholesky(covariance)
        roots = tf.stack([prior] * model.num_latent_gps)
        return [(mean, full), (model.q_mu_orthogonal, roots)]

    return BlockSVGP(model, blocks, q)
