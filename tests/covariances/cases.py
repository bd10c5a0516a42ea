"""Kernels on the sphere, and inducing variables of each kind for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables

from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    SphericalMatern52,
    SphericalSquaredExponential,
    ZonalKernel,
)

from .coordinates import Function, coordinates, inner_products, weights


def relu(t: float) -> float:
    return max(t, 0.0)


def swish(t: float) -> float:
    return t / (1 + np.exp(-4 * t))


ACTIVATIONS: dict[Function, Any] = {
    relu: "relu",
    swish: lambda t: t * tf.sigmoid(4 * t),
}
"""What is integrated, and what the library is given."""


@dataclass(frozen=True)
class Setting:
    """A kernel, and sets of harmonics for a base and an orthogonal inducing variable."""

    kernel: Callable[[], ZonalKernel]
    input_dim: int
    degrees: tuple[tuple[int, ...], tuple[int, ...]]


SETTINGS: dict[str, Setting] = {
    "matern": Setting(
        lambda: SphericalMatern52(variance=1.3, weight_variances=[0.6, 1.7], bias_variance=0.8),
        2,
        ((0, 1, 3), (1, 2, 3, 5)),
    ),
    "arc-cosine": Setting(
        lambda: ArcCosine(1, variance=0.7, weight_variances=[1.2, 0.5]),
        2,
        ((0, 1, 4), (1, 2)),
    ),
    "circle": Setting(
        lambda: SphericalSquaredExponential(
            variance=1.6, lengthscale=0.4, weight_variances=0.9, radial_power=0.5
        ),
        1,
        ((0, 2, 6), (1, 2, 3)),
    ),
}


def inputs(setting: Setting, num_rows: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(num_rows, setting.input_dim))


def points(setting: Setting, which: int) -> tuple[InducingVariables, None]:
    return InducingPoints(inputs(setting, 4 + which, seed=which)), None


def harmonics(setting: Setting, which: int) -> tuple[InducingVariables, None]:
    return SphericalHarmonics(setting.input_dim + 1, setting.degrees[which]), None


def activations(
    setting: Setting, which: int, function: Function | None = None, max_degree: int | None = None
) -> tuple[ActivationFeatures, Function]:
    """Those of the base end at another degree than those of the other."""
    function = function or (swish, relu)[which]
    Z = np.random.default_rng(20 + which).normal(size=(3 + which, setting.input_dim + 1))
    max_degree = (3, 6)[which] if max_degree is None else max_degree
    return ActivationFeatures(Z, ACTIVATIONS[function], max_degree), function


KINDS = {"points": points, "harmonics": harmonics, "activations": activations}


def by_coordinates(
    kernel: ZonalKernel,
    first: tuple[InducingVariables, Function | None],
    second: tuple[InducingVariables, Function | None],
    dimension: int,
) -> tf.Tensor:
    """``<psi_k, phi_m>`` of the two."""
    return inner_products(
        coordinates(first[0], kernel, first[1]),
        coordinates(second[0], kernel, second[1]),
        weights(kernel, dimension),
    )
