"""A whole deep GP with values that it trains well from."""

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
    """A deep GP for standardised data, ready to be trained.

    Inner layers begin near their mean functions, which hand the inputs on: the identity, principal
    components, or the inputs and zeros (:func:`identity_or_principal`; Salimbeni & Deisenroth
    2017). Their q has a small covariance. The features of each layer are chosen for the rows as
    these means hand them on; harmonics and activation features see hidden outputs wherever they
    move to. The last layer has the mean zero and the prior's q.

    :param X: Inputs ``[N, D]``, standardised; of many rows 10,000 are looked at.
    :param widths: The number of outputs of each layer, first to last: ``[5, 1]`` for two layers.
    :param features: Of every layer. "harmonics": spherical harmonics of most prior variance, and
        the finite-rank prior that they explain whole, without a Cholesky factor. "activation":
        hidden ReLU units, an activated deep GP, and the finite-rank prior of them under the
        arc-cosine kernel. "points": inducing
        points, with a squared exponential. "harmonic_points": harmonic blocks of a squared
        exponential under the negation, mean-field. "orthogonal": half harmonics and half points
        orthogonal to them.
    :param likelihood: Of as many functions as the last width; Gaussian with a variance of 0.1 by
        default.
    :param num_inducing: The number of inducing variables of each layer; fewer where there are no
        more features.
    :param kernel: A function of the number of columns that returns the kernel of a layer, of the
        features' family; a kernel with one weight or lengthscale for each column by default.
    :param num_data: The number of rows to be trained on; those of X by default.
    :param q_diag: Whether the covariances of all q's are diagonal.
    :param inner_scale: Of the whitened q's of inner layers, the standard deviation at first.
    :param num_samples: As for :class:`DeepGP`.
    :param num_prediction_samples: As for :class:`DeepGP`.
    :param seed: Of the choice of features, and of all draws.
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
