"""The registry: one entry per inducing variable, and per kernel that changes what happens.

A new family adds its entries here, and is then tested in everything GPflow offers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import ArcCosine, ChordalSquaredExponential, SphericalMatern32


@dataclass(frozen=True)
class Case:
    """A kernel and an inducing variable that belong together.

    :param name: Name of the case in the tests' names.
    :param build: Makes the kernel and the inducing variable, in GPflow's present default float.
    :param input_dim: Number of columns of X.
    :param diagonal: Whether Kuu is diagonal, so that nothing needs a Cholesky factor.
    :param num_factorisations: Cholesky factors that one use of Kuu may take.
    :param kernel_rtol: How far two ways to compute the same entry of the kernel may differ.
    """

    name: str
    build: Callable[[], tuple[Kernel, InducingVariables]]
    input_dim: int
    diagonal: bool = True
    num_factorisations: int = 0
    kernel_rtol: float = 1e-8


def matern32() -> tuple[Kernel, InducingVariables]:
    kernel = SphericalMatern32(
        variance=1.3, lengthscale=0.9, weight_variances=[0.6, 1.7], bias_variance=0.8
    )
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=4)


def arc_cosine(order: int) -> tuple[Kernel, InducingVariables]:
    kernel = ArcCosine(order, variance=0.7, weight_variances=[1.2, 0.5, 2.0], bias_variance=1.5)
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=3, max_degree=3)


def chordal() -> tuple[Kernel, InducingVariables]:
    kernel = ChordalSquaredExponential(variance=1.6, lengthscale=0.8, weight_variances=0.9)
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=1, max_degree=6)


def active_dims() -> tuple[Kernel, InducingVariables]:
    kernel = SphericalMatern32(
        variance=1.1, lengthscale=0.7, weight_variances=[0.8, 1.4], active_dims=[0, 2]
    )
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=3)


def truncated() -> tuple[Kernel, InducingVariables]:
    """The harmonics explain the whole kernel."""
    kernel = SphericalMatern32(lengthscale=0.8, weight_variances=[0.6, 1.7], max_degree=4)
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=4)


def sum_of_harmonics() -> tuple[Kernel, InducingVariables]:
    first = ArcCosine(1, variance=0.7, active_dims=[0, 1])
    second = SphericalMatern32(lengthscale=0.8, active_dims=[2])
    blocks = [
        SphericalHarmonics.for_kernel(first, input_dim=2, max_degree=4),
        SphericalHarmonics.for_kernel(second, input_dim=1, max_degree=3),
    ]
    return first + second, SumInducingVariables(blocks)


def sum_with_points() -> tuple[Kernel, InducingVariables]:
    first = ArcCosine(1, variance=0.7, active_dims=[1])
    second = gpflow.kernels.Matern32(variance=0.9, lengthscales=[0.6, 1.1])
    points = np.array([[-1.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [1.0, -1.0], [1.0, 1.0]])
    blocks = [
        SphericalHarmonics.for_kernel(first, input_dim=1, max_degree=6),
        InducingPoints(points),
    ]
    return first + second, SumInducingVariables(blocks)


CASES = (
    Case("harmonics-matern32-ard", matern32, input_dim=2),
    # The angle is the arc cosine of a number near one, whose rounding errors it takes the root of.
    Case("harmonics-arc-cosine-0", lambda: arc_cosine(0), input_dim=3, kernel_rtol=1e-6),
    Case("harmonics-arc-cosine-1", lambda: arc_cosine(1), input_dim=3),
    Case("harmonics-chordal", chordal, input_dim=1),
    Case("harmonics-active-dims", active_dims, input_dim=4),
    Case("harmonics-truncated", truncated, input_dim=2),
    Case("sum-of-harmonics", sum_of_harmonics, input_dim=3),
    Case("sum-with-points", sum_with_points, input_dim=2, diagonal=False, num_factorisations=1),
)
