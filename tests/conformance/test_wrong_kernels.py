"""Inducing variables with kernels that they do not belong to: Kuu, its operator and Kuf say why."""

import gpflow
import numpy as np
import pytest
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import RBF, Kernel, Matern12, Matern32, SharedIndependent

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import (
    ActivationFeatures,
    BoxFourierFeatures,
    FixedPlaces,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import ArcCosine, FiniteRank, Periodized, SphericalMatern52
from tests.conformance.helpers import assert_refused

from .cases import REPRESENTATIVES, Case

X = np.linspace(-1, 1, 12).reshape(4, 3)
HARMONICS, POINTS = SphericalHarmonics(3, [0]), InducingPoints(X[:, :2])
OF_FOUR = SphericalHarmonics(4, [0, 1, 2, 3, 5])
UNITS = ActivationFeatures.random(2, 5, "erf", 5, seed=0)
INTERVAL = VariationalFourierFeatures(0.0, 1.0, 2)
BOX = BoxFourierFeatures([0.0, -1.0], [1.0, 2.0], [[0, 0], [1, 0], [2, 3]])
ANOTHER_BOX = Periodized(Matern32(), [0.0, -1.0], [1.0, 2.5])
SUM = SumInducingVariables([HARMONICS, POINTS])

OUTPUTS = (
    "no covariance between SphericalHarmonics and SharedIndependent; it has several "
    "outputs: pass both to a model, which takes them as they are; where Kuu and Kuf are "
    "needed, wrap it in interdomain.inducing_variables.SharedIndependentInducingVariables"
    r"\(SphericalHarmonics\(...\)\) or SeparateIndependentInducingVariables"
)


class Unregistered(InducingVariables):
    """Inducing variables of which GPflow's dispatchers know nothing."""

    num_inducing = 1
    shape = (1, None, 1)


def assert_no_covariance(
    features: InducingVariables, kernel: Kernel, columns: int, message: str
) -> None:
    rows = np.resize(X, [4, columns])
    calls = (Kuu, Kuu_operator, lambda *pair: Kuf(*pair, rows))
    assert_refused((lambda call=call: call(features, kernel), message) for call in calls)


@pytest.mark.parametrize("case", REPRESENTATIVES, ids=lambda case: case.name)
def test_of_another_family(case: Case) -> None:
    """A kernel of finite rank is refused when it is made. Values of f have any kernel."""
    features = case.build()[1]
    if isinstance(features, FixedPlaces):
        return
    message = f"no covariance between {type(features).__name__} and Linear; use [A-Z]"
    assert_no_covariance(features, gpflow.kernels.Linear(), case.input_dim, message)
    assert_refused([(lambda: FiniteRank(gpflow.kernels.Linear(), features), message)])


def test_the_kernels_that_messages_name() -> None:
    assert_refused(
        [
            (lambda: FiniteRank(Matern32(), HARMONICS), "use SphericalMatern52, GlobeMatern52"),
            (lambda: FiniteRank(Matern32(), BOX), r"use Periodized.from_data\(kernel, X\)"),
            (lambda: FiniteRank(RBF(), INTERVAL), "use Matern12 or Matern32 or Matern52"),
            (lambda: FiniteRank(ANOTHER_BOX, HARMONICS), "and Periodized; use SphericalMatern52"),
            (lambda: FiniteRank(RBF(), Unregistered()), "between Unregistered and Squared.*; pass"),
        ]
    )


def test_that_do_not_fit() -> None:
    common = r"Z has 5 rows, .* common with ArcCosine, \[1\], have 3 harmonics"
    box = "kernel must have the features' box, from .* found one from .*for_ke"
    total = "the kernel is a sum of 2: pass SumInducingVariables"
    for row in (
        (UNITS, ArcCosine(1), 2, common),
        (HARMONICS, SharedIndependent(ArcCosine(), output_dim=2), 2, OUTPUTS),
        (BOX, ANOTHER_BOX, 2, box),
        (INTERVAL, Matern32() + Matern12(), 1, total),
        (SUM, ArcCosine() + RBF() + RBF(), 2, "2 blocks, but the kernel is a sum of 3"),
    ):
        assert_no_covariance(*row)


def test_columns_and_blocks_that_do_not_fit() -> None:
    """Kuf alone knows X; a sum knows what its blocks are."""
    other_columns = SphericalMatern52(active_dims=[0, 2])
    assert_refused(
        [
            (lambda: Kuf(OF_FOUR, other_columns, X), "sees 2 columns .* dimension 4; .* 3 here"),
            (lambda: Kuf(INTERVAL, Matern32(), X), "X must have one column, found 3; .*active_dim"),
            (lambda: SumInducingVariables([None]), "must have an entry that is not None"),
            (lambda: SumInducingVariables([HARMONICS, X]), r"ndarray; pass .* InducingPoints\(Z\)"),
        ]
    )
