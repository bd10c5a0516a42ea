"""Kernels and inducing variables of the layers that :func:`interdomain.deep.build` makes, by name.

They are chosen for the rows that reach the layer when all layers before it pass on their means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, SquaredExponential

from ..inducing_variables import ActivationFeatures, HarmonicInducingPoints, SphericalHarmonics
from ..kernels import ArcCosine, FiniteRank, HarmonicKernel, SphericalMatern52
from ..kernels._clustering import k_means
from ..sphere import num_harmonics
from ..sphere._typing import Array
from ..transforms import Negation
from .activation import ActivationLayer
from .additive import AdditiveLayer
from .layer import Layer
from .orthogonal import OrthogonalLayer
from .structured import StructuredLayer

KernelOf: TypeAlias = Callable[[int], Kernel]

_DEGREES = 8
"""The least ``max_degree`` of activation features."""

_UNITS = 2
"""The degrees of activation features have at least this many harmonics for each unit."""


class Parts(NamedTuple):
    """What a layer is made of: its class, its first arguments, and others by name."""

    kind: Callable[..., Layer]
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = MappingProxyType({})


Maker: TypeAlias = Callable[[Kernel, Array, int, int], Parts]
"""A function of a kernel, rows, the number of inducing variables and a seed."""


def _zonal(num_columns: int) -> Kernel:
    return SphericalMatern52(weight_variances=np.ones(num_columns))


def _arc_cosine(num_columns: int) -> Kernel:
    return ArcCosine(weight_variances=np.ones(num_columns))


def _stationary(num_columns: int) -> Kernel:
    return SquaredExponential(lengthscales=np.full(num_columns, np.sqrt(num_columns)))


def _isotropic(num_columns: int) -> Kernel:
    return SquaredExponential(lengthscales=np.sqrt(num_columns))


def _harmonics(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Parts:
    harmonics = SphericalHarmonics.for_data(kernel, X, num_inducing)
    return Parts(StructuredLayer, (FiniteRank(kernel, harmonics), harmonics))


def _units(kernel: Any, X: Array, num_inducing: int) -> ActivationFeatures:
    dimension = X.shape[1] + 1
    degree, count = 0, 0
    while degree < _DEGREES or count < _UNITS * num_inducing:
        degree += 1
        if kernel.has_degree(dimension, degree):
            count += num_harmonics(dimension, degree)
    return ActivationFeatures.from_data(kernel, X, num_inducing, "relu", degree)


def _activation(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Parts:
    units = _units(kernel, X, num_inducing)
    return Parts(ActivationLayer, (kernel, units), {"finite_rank": True})


def _points(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Parts:
    return Parts(StructuredLayer, (kernel, InducingPoints(k_means(X, num_inducing, seed=seed))))


def _harmonic_points(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Parts:
    harmonic = HarmonicKernel(kernel, Negation(centre=X.mean(axis=0)))
    size = max(num_inducing // harmonic.num_components, 1)
    points = HarmonicInducingPoints.from_data(harmonic, X, size, fold=True, seed=seed)
    return Parts(AdditiveLayer, (harmonic, points))


def _orthogonal(kernel: Kernel, X: Array, num_inducing: int, seed: int) -> Parts:
    base = max(num_inducing // 2, 1)
    harmonics = SphericalHarmonics.for_data(kernel, X, base)
    points = InducingPoints(k_means(X, max(num_inducing - base, 1), seed=seed))
    return Parts(OrthogonalLayer, (kernel, harmonics, points))


MAKERS: Mapping[str, tuple[Maker, KernelOf]] = {
    "harmonics": (_harmonics, _zonal),
    "activation": (_activation, _arc_cosine),
    "points": (_points, _stationary),
    "harmonic_points": (_harmonic_points, _isotropic),
    "orthogonal": (_orthogonal, _zonal),
}
"""By name: the function that makes the parts, and the function that makes the default kernel."""
