"""Builds a complete deep GP, with initial values that it trains well from."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
from gpflow.base import TensorType
from gpflow.likelihoods import Gaussian, Likelihood

from .._arguments import as_integers, choice, filled_matrix, function, instance, integer, number
from .features import MAKERS, KernelOf
from .layer import Layer
from .mean_functions import identity_or_principal
from .model import DeepGP

FEATURES = tuple(MAKERS)
"""The names that :func:`build` takes for ``features``."""

_NOISE = 0.1
_ROWS = 10_000


def build(
    X: TensorType,
    *,
    widths: Sequence[int],
    features: str = "harmonics",
    likelihood: Likelihood | None = None,
    num_inducing: int = 100,
    kernel: KernelOf | None = None,
    num_data: int | None = None,
    q_diag: bool = False,
    inner_scale: float = 1e-2,
    num_samples: int = 1,
    num_prediction_samples: int = 32,
    seed: int = 0,
) -> DeepGP:
    """Build a deep GP for standardised data, ready to be trained.

    Inner layers start close to their mean functions, which pass the inputs on: the identity,
    principal components, or the inputs and zeros (:func:`identity_or_principal`; Salimbeni &
    Deisenroth 2017). Their q starts with a small covariance. The features of each layer are chosen
    for the rows of X as these mean functions pass them on; harmonics and activation features cover
    hidden outputs wherever training moves them. The last layer has a zero mean function, and its q
    starts at the prior.

    :param X: Inputs ``[N, D]``, standardised; at most 10,000 of the rows are used.
    :param widths: The number of outputs of each layer, first to last: ``[5, 1]`` for two layers.
    :param features: The features of every layer. "harmonics": spherical harmonics of largest prior
        variance, with the finite-rank prior that they represent completely, without a Cholesky
        factor. "activation": hidden ReLU units (an activated deep GP), with the finite-rank prior
        that they represent under the arc-cosine kernel. "points": inducing points, with a squared
        exponential kernel. "harmonic_points": harmonic blocks of a squared exponential kernel under
        the negation, with a mean-field q. "orthogonal": half harmonics, and half inducing points
        orthogonal to them.
    :param likelihood: A likelihood for as many functions as the last width; Gaussian with a
        variance of 0.1 by default.
    :param num_inducing: The number of inducing variables of each layer; fewer if there are not so
        many features.
    :param kernel: A function that takes the number of input columns of a layer and returns its
        kernel, which must suit the features. By default the kernel has one weight or lengthscale
        for each column; for "harmonic_points" it has one lengthscale for all.
    :param num_data: The number of training rows; the number of rows of X by default.
    :param q_diag: Whether the covariances of all q's are diagonal.
    :param inner_scale: The initial standard deviation of the whitened q's of inner layers.
    :param num_samples: As for :class:`DeepGP`.
    :param num_prediction_samples: As for :class:`DeepGP`.
    :param seed: The seed for the choice of features, and for all draws.
    :raises ValueError: If X is not a finite matrix, ``widths`` are not positive integers,
        ``features`` is unknown, or X has fewer rows than there are points or units.
    """
    rows = filled_matrix("X", X, "[N, D]")
    count = len(rows)
    rows = rows[:: -(-count // _ROWS)].astype(gpflow.default_float())
    remedy = "pass the number of outputs of each layer, such as [5, 1]"
    sizes = as_integers("widths", widths, remedy)
    if not sizes or min(sizes) < 1:
        raise ValueError(f"widths must be positive integers, found {widths!r}; {remedy}.")
    make, default_kernel = MAKERS[choice("features", features, FEATURES)]
    if likelihood is None:
        likelihood = Gaussian(_NOISE)
    instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
    integer("num_inducing", num_inducing, at_least=1)
    make_kernel = default_kernel
    if kernel is not None:
        make_kernel = function("kernel", kernel, "a function of the number of columns")
    if num_data is None:
        num_data = count
    if number("inner_scale", inner_scale) <= 0:
        raise ValueError(
            f"inner_scale must be positive, found {inner_scale}; pass a small number such as 0.01."
        )
    layers: list[Layer] = []
    for index, width in enumerate(sizes):
        is_last = index == len(sizes) - 1
        parts = make(make_kernel(rows.shape[1]), rows, num_inducing, seed)
        mean = None if is_last else identity_or_principal(rows, width)
        layer = parts.kind(
            *parts.arguments,
            **parts.options,
            num_data=num_data,
            mean_function=mean,
            num_latent_gps=width,
            q_diag=q_diag,
            name=f"layer_{index}",
        )
        if mean is not None:
            for _, q_sqrt in layer.variational_parameters:
                q_sqrt.assign(inner_scale * q_sqrt.numpy())
            rows = np.asarray(mean(rows))
        layers.append(layer)
    return DeepGP(
        layers,
        likelihood,
        num_samples=num_samples,
        num_prediction_samples=num_prediction_samples,
        seed=seed,
    )
