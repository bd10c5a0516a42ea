"""Inducing variables with kernels that they do not belong to: Kuu, its operator and Kuf say why."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import RBF, Kernel, Matern12, Matern32, SharedIndependent

from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import (
    ActivationFeatures,
    FourierFeatures,
    HarmonicInducingPoints,
    InducingPatches,
    IntervalFourierFeatures,
    PeriodicFourierFeatures,
    ProductInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import (
    ArcCosine,
    Convolutional,
    HarmonicKernel,
    HarmonizableComponent,
    HarmonizableMixture,
    Periodized,
    SphericalMatern52,
)
from interdomain.transforms import Rotation
from tests.conformance.helpers import assert_refused

from .cases import REPRESENTATIVES, Case

X = np.linspace(-1, 1, 12).reshape(4, 3)
HARMONICS, POINTS, INTERVAL = (
    SphericalHarmonics(3, [0]),
    InducingPoints(X[:, :2]),
    IntervalFourierFeatures(0.0, 1.0, 2),
)
FOURIER = FourierFeatures([[0.1], [0.3]])
BOX = PeriodicFourierFeatures([0.0, -1.0], [1.0, 2.0], [[0, 0], [1, 0], [2, 3]])
ANOTHER_BOX = Periodized(Matern32(), [0.0, -1.0], [1.0, 2.5])
ROTATED = HarmonicKernel(gpflow.kernels.Matern52(), Rotation(7))
CONV = (
    Convolutional(RBF(), (3, 4), (2, 2)),
    Convolutional(RBF(), (3, 4), (2, 2), location_kernel=RBF()),
)
Z = np.zeros((4, 3, 2))
SPACE = SphericalMatern52(active_dims=[0, 1])
TIME = Periodized(Matern32(lengthscales=0.4), -1.2, 1.2, active_dims=[2])
PRODUCT = ProductInducingVariables(
    [SphericalHarmonics.for_kernel(SPACE, 2, 3), PeriodicFourierFeatures.for_kernel(TIME, 7)]
)
TWO_COLUMNS = HarmonizableComponent([[0.1, 0.2]])

# Features, a kernel, the number of columns of X, and the message.
WRONG: list[tuple[InducingVariables, Kernel, int, str]] = [
    (
        ActivationFeatures.random(2, 5, "erf", 5, seed=0),
        ArcCosine(1),
        2,
        r"Z has 5 rows, .* the activation has in common with ArcCosine, \[1\], have 3 harmonics",
    ),
    (
        SphericalHarmonics(4, [0, 1, 2, 3, 5]),
        ArcCosine(1),
        3,
        r"degrees must have nonzero eigenvalues under ArcCosine in dimension 4, found zero for "
        r"\[3, 5\]; .*for_k",
    ),
    (
        HARMONICS,
        SharedIndependent(ArcCosine(), output_dim=2),
        2,
        "no covariance between SphericalHarmonics and SharedIndependent; it has several "
        "outputs: pass both to a model, which takes them as they are; where Kuu and Kuf are "
        "needed, wrap it in interdomain.inducing_variables.SharedIndependentInducingVariables"
        r"\(SphericalHarmonics\(...\)\) or SeparateIndependentInducingVariables",
    ),
    (HarmonicInducingPoints(Z[:3]), ROTATED, 2, "points for the 4 components .*, found 3"),
    (
        HarmonicInducingPoints(Z, multiplicities=[1, 1, 2, 2]),
        ROTATED,
        2,
        r"multiplicities must be \(1, 2, 2, 2\) for this ker",
    ),
    (BOX, ANOTHER_BOX, 2, "kernel must have the features' box, from .* found one from .*for_ke"),
    (BOX, ANOTHER_BOX + Matern32(), 2, "the kernel is a sum of 2: pass SumInducingVariables"),
    (INTERVAL, Matern32() + Matern12(), 1, "the kernel is a sum of 2: pass SumInducingVariables"),
    (
        INTERVAL,
        Matern32(lengthscales=[1.0, 2.0]),
        2,
        r"kernel.lengthscales must be one number, found shape \(2,\); pass a sum of kernels",
    ),
    (FOURIER, HarmonizableMixture([TWO_COLUMNS]), 2, "pass SumInducingVariables"),
    (
        FOURIER,
        TWO_COLUMNS,
        2,
        r"frequencies must have 2 columns, as the kernel's have, found 1; pass a matrix \[m, 2\]",
    ),
    (PRODUCT, SPACE + TIME, 3, "no covariance between ProductInducingVariables and Sum"),
    (PRODUCT, TIME * SPACE, 3, "no covariance between SphericalHarmonics and Periodized"),
    (
        PRODUCT,
        SPACE * (TIME * RBF()),
        3,
        "have 3 entries, .* found 2; .*gpflow makes one product of products",
    ),
    (
        SumInducingVariables([HARMONICS, POINTS]),
        ArcCosine() + RBF() + RBF(),
        2,
        "2 blocks, but the kernel is a sum of 3",
    ),
    (
        SumInducingVariables([POINTS, HARMONICS]),
        ArcCosine() + RBF(),
        2,
        "between SphericalHarmonics and Squared",
    ),
    (
        InducingPatches(np.zeros((5, 3))),
        CONV[0],
        12,
        "Z must have 4 columns for this Convolutional, .* found 3",
    ),
    (
        InducingPatches(np.zeros((5, 4))),
        CONV[1],
        12,
        "locations must be given for a kernel with a location_kernel, found None; pass Ind",
    ),
]


def assert_no_covariance(
    features: InducingVariables, kernel: Kernel, columns: int, message: str
) -> None:
    rows = np.resize(X, [4, columns])
    assert_refused(
        [
            (lambda: Kuu(features, kernel), message),
            (lambda: Kuu_operator(features, kernel), message),
            (lambda: Kuf(features, kernel, rows), message),
        ]
    )


@pytest.mark.parametrize("case", REPRESENTATIVES, ids=lambda case: case.name)
def test_of_another_family(case: Case) -> None:
    features = case.build()[1]
    message = f"no covariance between {type(features).__name__} and Linear"
    assert_no_covariance(features, gpflow.kernels.Linear(), case.input_dim, message)


def test_that_do_not_fit() -> None:
    for row in WRONG:
        assert_no_covariance(*row)


def test_columns_and_blocks_that_do_not_fit() -> None:
    """Kuf alone knows X; a sum knows what its blocks are."""
    erf = ActivationFeatures.random(2, 5, "erf", 5, seed=0)
    erf_columns = "sees 1 columns of Xnew, but the inducing variable has"
    assert_refused(
        [
            (lambda: Kuf(erf, SphericalMatern52(), X[:, :1]), erf_columns),
            (
                lambda: Kuf(
                    SphericalHarmonics(4, [0, 1]), SphericalMatern52(active_dims=[0, 2]), X
                ),
                "sees 2 columns .* has dimension 4; .* 3 here",
            ),
            (
                lambda: Kuf(BOX, Periodized(Matern32(), BOX.lower, BOX.upper), X),
                "X must have 2 columns, those of the box, found 3",
            ),
            (lambda: SumInducingVariables([]), "inducing_variables must have one entry .* none"),
            (lambda: SumInducingVariables([None]), "must have an entry that is not None"),
            (
                lambda: SumInducingVariables([HARMONICS, X]),
                r"found ndarray; pass for example InducingPoints\(Z\)",
            ),
            (lambda: Kuf(INTERVAL, Matern32(), X), "X must have one column, found 3; .*active_dim"),
            (
                lambda: Kuf(FOURIER, HarmonizableComponent([[0.1]]), X),
                "X must have 1 columns, as frequencies have, found 3",
            ),
        ]
    )
