"""Rows with several functionals, and the parts of models for them."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingPoints

import interdomain as idm
from interdomain.functionals import Areas, Derivative, Mean, Value

RNG = np.random.default_rng(3)
REGIONS = Areas([[0.1], [0.2], [0.9]], regions=[0, 0, 1])
FUNCTIONALS = [Value(), Mean([0.2]), Derivative(0), REGIONS]
NOISE = np.array([0.1, 0.2, 1.0, 0.05])

KINDS = np.arange(60) % 4
X = np.stack([RNG.uniform(0.2, 0.8, 60), KINDS], axis=1)
X[3::4, 0] = np.arange(15) % 2
Y = np.sin(6 * X[:, :1]) + 0.1 * RNG.normal(size=(60, 1))
NEW = np.array([[0.5, 0], [0.5, 1], [0.5, 2], [1.0, 3]])

Parts = tuple[Any, Any]


def waves() -> Parts:
    kernel = idm.kernels.Periodized(gpflow.kernels.Matern52(lengthscales=0.3), [-1.0], [2.0])
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 21)
    return idm.kernels.FiniteRank(kernel, features), features


def points() -> Parts:
    features = InducingPoints(np.linspace(0, 1, 9)[:, None])
    return idm.kernels.FiniteRank(gpflow.kernels.Matern52(lengthscales=0.3), features), features


def splines() -> Parts:
    features = idm.inducing_variables.SplineFeatures([0.0], [1.0], [12], 3)
    return idm.kernels.FiniteRank(gpflow.kernels.Matern52(lengthscales=0.3), features), features


def harmonics() -> Parts:
    kernel = idm.kernels.SphericalMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 1, max_degree=8)
    return idm.kernels.FiniteRank(kernel, features), features


def rows_of(build: Callable[[], Parts], functionals: Any = FUNCTIONALS) -> Parts:
    prior, features = build()
    return idm.kernels.Functional(prior, functionals), features
