"""Objects and data that constructors are given, and the form of a table's entry."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingPoints

from interdomain import kernels, models, streaming, transforms
from tests.arguments.kinds import (
    Argument,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = RNG.normal(size=(20, 1))
IMAGES = RNG.normal(size=(6, 16))


def matern() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32()


@lru_cache
def zonal() -> kernels.ZonalKernel:
    return kernels.ArcCosine()


def box() -> kernels.Periodized:
    return kernels.Periodized.from_data(matern(), X)


def columns() -> list[kernels.NumericColumn]:
    return [kernels.NumericColumn([0.0, 1.0]), kernels.NumericColumn([0.0, 0.3, 1.0])]


@lru_cache
def additive() -> kernels.Additive:
    return kernels.Additive(columns())


def component() -> kernels.HarmonizableComponent:
    return kernels.HarmonizableComponent(np.ones([2, 1]))


@lru_cache
def harmonic() -> kernels.HarmonicKernel:
    return kernels.HarmonicKernel(matern(), transforms.Negation(0))


def convolutional() -> kernels.Convolutional:
    return kernels.Convolutional(matern(), (4, 4), (2, 2))


def likelihood() -> gpflow.likelihoods.Likelihood:
    return gpflow.likelihoods.Gaussian()


def constant() -> gpflow.mean_functions.MeanFunction:
    return gpflow.mean_functions.Constant()


def points() -> InducingPoints:
    return InducingPoints(X[:3])


@lru_cache
def statistics() -> streaming.SufficientStatistics:
    return models.StructuredSGPR((X, Y), matern(), points(), progress=False).statistics


@lru_cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def saved_statistics() -> Path:
    path = Path(_folder().name) / "statistics.npz"
    statistics().save(path)
    return path


Entry = tuple[Callable[..., Any], dict[str, Argument]]


def entry(make: Callable[..., Any], *arguments: dict[str, Argument], **more: Argument) -> Entry:
    joined: dict[str, Argument] = {}
    for group in arguments:
        joined |= group
    return make, joined | more
