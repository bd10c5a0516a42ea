"""What features depend on is read from their graph, family by family."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.streaming.contributions import Contributions

POINTS = np.random.default_rng(0).normal(size=(4, 2))
ivs, kernels = idm.inducing_variables, idm.kernels


def finite_rank(kernel: Any, features: Any) -> tuple[Any, Any]:
    return kernels.FiniteRank(kernel, features), features


def sum_of_harmonics() -> tuple[Any, Any]:
    kernel = kernels.ArcCosine() + kernels.SphericalMatern52(active_dims=[0])
    blocks = [ivs.SphericalHarmonics(3, [0, 1]), ivs.SphericalHarmonics(2, [0, 1])]
    return kernel, ivs.SumInducingVariables(blocks)


def intervals_and_points() -> tuple[Any, Any]:
    """An interval for each column."""
    first, second = (
        gpflow.kernels.Matern12(active_dims=[0]),
        gpflow.kernels.Matern32(active_dims=[1]),
    )
    kernel = first + second + gpflow.kernels.SquaredExponential() + gpflow.kernels.White()
    intervals = [ivs.IntervalFourierFeatures(-9, 9, 3), ivs.IntervalFourierFeatures(-8, 8, 2)]
    points = gpflow.inducing_variables.InducingPoints(POINTS)
    return kernel, ivs.SumInducingVariables([*intervals, points, None])


def patches() -> tuple[Any, Any]:
    kernel = kernels.Convolutional(gpflow.kernels.Matern32(), (1, 2), (1, 1))
    return kernel, ivs.InducingPatches(POINTS[:, :1])


SCALES, STATIONARY = ("weight_variances", "bias_variance"), ("variance", "lengthscales")
CASES: dict[str, tuple[Callable[[], tuple[Any, Any]], set[str]]] = {
    "harmonics": (
        lambda: (kernels.SphericalMatern32(), ivs.SphericalHarmonics(3, [0, 1])),
        {f"kernel.{name}" for name in SCALES},
    ),
    "harmonics of a kernel of finite rank": (
        lambda: finite_rank(kernels.SphericalMatern32(), ivs.SphericalHarmonics(3, [0, 1])),
        {f"kernel.kernel.{name}" for name in SCALES},
    ),
    "harmonics of a sum": (
        sum_of_harmonics,
        {f"kernel.kernels[{i}].{name}" for i in (0, 1) for name in SCALES},
    ),
    "an interval": (
        lambda: (gpflow.kernels.Matern52(active_dims=[1]), ivs.IntervalFourierFeatures(-9, 9, 3)),
        set(),
    ),
    "intervals and points": (
        intervals_and_points,
        {f"kernel.kernels[2].{name}" for name in STATIONARY} | {"inducing_variable.blocks[2].Z"},
    ),
    "activations": (
        lambda: (kernels.SphericalMatern32(), ivs.ActivationFeatures(np.eye(3), "softplus", 4)),
        {f"kernel.{name}" for name in SCALES} | {"inducing_variable.Z"},
    ),
    "points": (
        lambda: (gpflow.kernels.Matern32(), gpflow.inducing_variables.InducingPoints(POINTS)),
        {f"kernel.{name}" for name in STATIONARY} | {"inducing_variable.Z"},
    ),
    "patches": (
        patches,
        {f"kernel.base_kernel.{name}" for name in STATIONARY}
        | {"kernel.weights", "inducing_variable.Z"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parameters_of_the_features(name: str) -> None:
    kernel, inducing_variable = CASES[name][0]()
    mean = gpflow.mean_functions.Constant(1.0)
    features = Contributions(kernel, inducing_variable, mean, 2, 1)
    assert set(features.parameters) == CASES[name][1]
    assert features.num_inducing == inducing_variable.num_inducing
    # The diagonal is the sum over terms of factors and what rows bring.
    _, terms = features.evaluate(POINTS, np.zeros((4, 1)))
    diagonal = features.diagonal_factors().numpy() @ terms
    if np.any(features.charged):
        np.testing.assert_allclose(diagonal, kernel(POINTS, full_cov=False), rtol=1e-12)
    else:  # nothing is left out, so that nothing is summed
        assert terms.shape == (0, 4) and name == "harmonics of a kernel of finite rank"


class Stretched(idm.kernels.SphericalMatern32):
    """A kernel of a user's own, whose map to the sphere has a parameter of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stretch = gpflow.Parameter(2.0)

    def to_sphere(self, X: Any) -> Any:
        return super().to_sphere(X * self.stretch)


class Scaled(idm.kernels.SphericalMatern32):
    """One with a diagonal of its own."""

    def K_diag(self, X: Any) -> Any:
        return 3.0 * super().K_diag(X)


def test_parameters_of_a_users_own_kernel_are_found() -> None:
    harmonics, mean = ivs.SphericalHarmonics(3, [0, 1]), gpflow.mean_functions.Zero()
    features = Contributions(Stretched(), harmonics, mean, 2, 1)
    assert "kernel.stretch" in features.parameters
    assert "kernel.variance" not in features.parameters
    # A diagonal of an unknown form depends on all that it is computed from.
    features = Contributions(Scaled(), harmonics, mean, 2, 1)
    assert "kernel.variance" in features.parameters


def test_a_mean_function_of_unknown_form_counts_among_the_features() -> None:
    harmonics = ivs.SphericalHarmonics(3, [0, 1])
    mean = gpflow.mean_functions.Polynomial(2, 2, 1)
    features = Contributions(kernels.ArcCosine(), harmonics, mean, 2, 1)
    assert "mean_function.w" in features.parameters
    stacked, _ = features.evaluate(POINTS, np.ones((4, 1)))
    np.testing.assert_allclose(stacked[-2], (1 - mean(POINTS).numpy())[:, 0])
