"""Builds a complete deep GP, with initial values that it trains well from.

The features of a layer are chosen for the rows that reach it when all layers before it pass on
their means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import gpflow
import numpy as np
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, SquaredExponential
from gpflow.likelihoods import Gaussian, Likelihood
from gpflow.mean_functions import Identity, Linear, MeanFunction

from .._arguments import Array, as_integers, choice, filled_matrix, instance, integer
from ..core.clustering import k_means
from ..core.finite_rank import FiniteRank
from ..families.harmonic.decomposition import HarmonicKernel
from ..families.harmonic.points import HarmonicInducingPoints
from ..families.harmonic.transforms.euclidean import Negation
from ..families.sphere.activation_features import ActivationFeatures
from ..families.sphere.arc_cosine import ArcCosine
from ..families.sphere.harmonics import SphericalHarmonics
from ..families.sphere.mathematics.dimensions import num_harmonics
from ..families.sphere.stationary import SphericalMatern52
from .layer import Layer
from .model import DeepGP
from .structured import ActivationLayer, AdditiveLayer, OrthogonalLayer, StructuredLayer

KernelOf: TypeAlias = Callable[[int], Kernel]

Maker: TypeAlias = Callable[[Kernel, Array, int, int], Callable[..., Layer]]
"""A function of a kernel, rows, the number of inducing variables and a seed, which returns a layer
that only lacks its options."""

_DEGREES = 8
"""The least ``max_degree`` of activation features."""

_UNITS = 2
"""The degrees of activation features have at least this many harmonics for each unit."""

_INNER_SCALE = 1e-2
"""The initial standard deviation of the whitened q's of inner layers."""

_NOISE = 0.1
_ROWS = 10_000


def _harmonics(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Callable[..., Layer]:
    harmonics = SphericalHarmonics.for_data(kernel, X, num_inducing)
    return partial(StructuredLayer, FiniteRank(kernel, harmonics), harmonics)


def _activation(kernel: Any, X: Array, num_inducing: int, seed: int) -> Callable[..., Layer]:
    dimension = X.shape[1] + 1
    degree, count = 0, 0
    while degree < _DEGREES or count < _UNITS * num_inducing:
        degree += 1
        if kernel.has_degree(dimension, degree):
            count += num_harmonics(dimension, degree)
    units = ActivationFeatures.from_data(kernel, X, num_inducing, "relu", degree)
    return partial(ActivationLayer, kernel, units, finite_rank=True)


def _points(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Callable[..., Layer]:
    points = InducingPoints(k_means(X, num_inducing, seed=seed))
    return partial(StructuredLayer, kernel, points)


def _harmonic_points(
    kernel: Kernel, X: Array, num_inducing: int, seed: int
) -> Callable[..., Layer]:
    harmonic = HarmonicKernel(kernel, Negation(centre=X.mean(axis=0)))
    size = max(num_inducing // harmonic.num_components, 1)
    points = HarmonicInducingPoints.from_data(harmonic, X, size, fold=True, seed=seed)
    return partial(AdditiveLayer, harmonic, points)


def _orthogonal(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Callable[..., Layer]:
    base = max(num_inducing // 2, 1)
    harmonics = SphericalHarmonics.for_data(kernel, X, base)
    points = InducingPoints(k_means(X, max(num_inducing - base, 1), seed=seed))
    return partial(OrthogonalLayer, kernel, harmonics, points)


_MAKERS: Mapping[str, tuple[Maker, KernelOf]] = {
    "harmonics": (_harmonics, lambda d: SphericalMatern52(weight_variances=np.ones(d))),
    "activation": (_activation, lambda d: ArcCosine(weight_variances=np.ones(d))),
    "points": (_points, lambda d: SquaredExponential(lengthscales=np.full(d, np.sqrt(d)))),
    "harmonic_points": (_harmonic_points, lambda d: SquaredExponential(lengthscales=np.sqrt(d))),
    "orthogonal": (_orthogonal, lambda d: SphericalMatern52(weight_variances=np.ones(d))),
}
"""By name: the function that makes the layer, and the default kernel of d columns."""

FEATURES = tuple(_MAKERS)
"""The names that :func:`build` takes for ``features``."""


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
    seed: int = 0,
    **options: Any,
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
    :param seed: The seed for the choice of features, and for all draws.
    :param options: ``num_samples`` and ``num_prediction_samples`` of :class:`DeepGP`.
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
    make, default_kernel = _MAKERS[choice("features", features, FEATURES)]
    likelihood = Gaussian(_NOISE) if likelihood is None else likelihood
    instance("likelihood", likelihood, Likelihood, "a GPflow likelihood")
    integer("num_inducing", num_inducing, at_least=1)
    kernel = kernel or default_kernel
    instance("kernel", kernel, Callable, "a function of the number of columns")
    layers: list[Layer] = []
    for index, width in enumerate(sizes):
        mean = None if index == len(sizes) - 1 else identity_or_principal(rows, width)
        layer = make(kernel(rows.shape[1]), rows, num_inducing, seed)(
            num_data=count if num_data is None else num_data,
            mean_function=mean,
            num_latent_gps=width,
            q_diag=q_diag,
            name=f"layer_{index}",
        )
        if mean is not None:
            for _, q_sqrt in layer.variational_parameters:
                q_sqrt.assign(_INNER_SCALE * q_sqrt.numpy())
            rows = np.asarray(mean(rows))
        layers.append(layer)
    return DeepGP(layers, likelihood, seed=seed, **options)


def identity_or_principal(X: Array, width: int) -> MeanFunction:
    """The mean function of a hidden layer (Salimbeni & Deisenroth 2017, section 4), not trainable.

    It is the identity if the layer has as many outputs as inputs. If it has fewer, it returns the
    first principal components of the centred inputs. If it has more, it appends columns of zeros to
    the inputs.

    :param X: The inputs ``[N, D]`` of the layer.
    :param width: The number of outputs.
    :raises ValueError: If X is not a finite matrix, or ``width`` < 1.
    """
    rows = filled_matrix("X", X, "[N, D]")
    width = integer("width", width, at_least=1)
    columns = rows.shape[1]
    if width == columns:
        return Identity()
    if width > columns:
        matrix, offset = np.eye(columns, width), np.zeros(width)
    else:
        centre = rows.mean(axis=0)
        _, _, directions = np.linalg.svd(rows - centre, full_matrices=True)
        matrix = directions[:width].T
        offset = -centre @ matrix
    mean = Linear(matrix, offset)
    gpflow.set_trainable(mean, False)
    return mean
