"""The function ``build``, which makes a complete deep GP with good initial values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.likelihoods import Gaussian, Likelihood
from gpflux.helpers import construct_mean_function

from .._arguments import Array, as_integers, choice, filled_matrix, integer
from ..core.clustering import k_means
from ..inducing_variables import ActivationFeatures, SphericalHarmonics
from ..kernels import ArcCosine, FiniteRank, SphericalMatern52
from ..models import JointQ
from ..sphere import num_harmonics
from .layer import Layer
from .model import DeepGP

_DEGREES = 8
"""The least ``max_degree`` of activation features."""

_UNITS = 2
"""The number of harmonics that activation features have at least, for each unit."""

_INNER_SCALE = 1e-2
"""The initial standard deviation of the whitened q's of inner layers."""

_NOISE = 0.1
_ROWS = 10_000


def build(
    X: TensorType,
    *,
    widths: Sequence[int],
    features: str = "harmonics",
    likelihood: Likelihood | None = None,
    num_inducing: int = 100,
    q_diag: bool = False,
    seed: int = 0,
    num_samples: int = 1,
    num_prediction_samples: int = 32,
) -> DeepGP:
    """Build a deep GP for standardised data, ready to be trained.

    Inner layers start close to their mean functions. A mean function is the identity; the first
    principal components if there are fewer outputs than inputs; or the inputs and columns of zeros
    if there are more (Salimbeni & Deisenroth 2017, section 4). The q of an inner layer starts with
    a small covariance. Its features are chosen for the rows of X as the mean functions transform
    them. The last layer has a zero mean function, and its q starts at the prior. Kernels have one
    weight or lengthscale per column; for other kernels, build a :class:`DeepGP` of your own layers.

    :param X: Inputs ``[N, D]``, standardised; at most 10,000 of the rows are used.
    :param widths: The number of outputs of each layer, first to last: ``[5, 1]`` for two layers.
    :param features: The features of every layer. "harmonics": spherical harmonics of largest prior
        variance, with their finite-rank prior, which they represent completely, without a Cholesky
        factor. "activation": hidden ReLU units (an activated deep GP), with their finite-rank prior
        under the arc-cosine kernel. "points": inducing points, with a squared exponential kernel.
    :param likelihood: A likelihood with as many latent functions as the last width; Gaussian with a
        variance of 0.1 by default.
    :param num_inducing: The number of inducing variables of each layer; fewer if there are not so
        many features.
    :param q_diag: Whether the covariances of all q's are diagonal.
    :param seed: The seed for the choice of features, and for all draws.
    :param num_samples: The number of samples of the hidden layers in the bound, for each row.
    :param num_prediction_samples: The number of samples over which predictions are averaged.
    :raises ValueError: If X is not a finite matrix, ``widths`` are not integers, ``features`` is
        unknown, or X has fewer rows than there are points or units.
    """
    rows = filled_matrix("X", X, "[N, D]")
    count = len(rows)
    rows = rows[:: -(-count // _ROWS)].astype(gpflow.default_float())
    sizes = as_integers("widths", widths, "pass the number of outputs of each layer, as [5, 1]")
    seed = integer("seed", seed, at_least=0)
    choice("features", features, ("harmonics", "activation", "points"))
    likelihood = Gaussian(_NOISE) if likelihood is None else likelihood
    layers: list[Layer] = []
    for index, width in enumerate(sizes):
        is_last = index == len(sizes) - 1
        mean = None if is_last else construct_mean_function(rows, rows.shape[1], width)
        prior, inducing_variable = _chosen(features, rows, num_inducing, seed)
        q = JointQ(prior, inducing_variable, num_latent_gps=width, q_diag=q_diag)
        layers.append(Layer(prior, q, count, mean, name=f"layer_{index}"))
        if mean is not None:
            q.q_sqrt.assign(_INNER_SCALE * q.q_sqrt)
            rows = np.asarray(mean(rows))
    return DeepGP(
        layers,
        likelihood,
        num_samples=num_samples,
        num_prediction_samples=num_prediction_samples,
        seed=seed,
    )


def _chosen(
    features: str, X: Array, num_inducing: int, seed: int
) -> tuple[Kernel, InducingVariables]:
    """A prior for rows X, and its features."""
    columns = X.shape[1]
    kernel: Any
    if features == "harmonics":
        kernel = SphericalMatern52(weight_variances=np.ones(columns))
        harmonics = SphericalHarmonics.for_data(kernel, X, num_inducing)
        return FiniteRank(kernel, harmonics), harmonics
    if features == "points":
        kernel = SquaredExponential(lengthscales=np.full(columns, np.sqrt(columns)))
        return kernel, InducingPoints(k_means(X, num_inducing, seed=seed))
    kernel = ArcCosine(weight_variances=np.ones(columns))
    degree, count = 0, 0
    while degree < _DEGREES or count < _UNITS * num_inducing:
        degree += 1
        count += kernel.has_degree(columns + 1, degree) * num_harmonics(columns + 1, degree)
    units = ActivationFeatures.from_data(kernel, X, num_inducing, "relu", degree)
    return FiniteRank(kernel, units), units
