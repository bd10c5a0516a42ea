"""The registry: one entry per inducing variable, and per kernel that changes what happens.

A new family adds its entries here, and is then tested in everything GPflow offers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel

from interdomain.core.columns import WholeRows
from interdomain.inducing_variables import (
    ActivationFeatures,
    BoxFourierFeatures,
    FixedPlaces,
    HarmonicInducingPoints,
    HarmonizableFourierFeatures,
    InducingPatches,
    OrbitInducingPoints,
    ProductInducingVariables,
    SphericalHarmonics,
    SplineFeatures,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import (
    ArcCosine,
    Convolutional,
    FiniteRank,
    FreeSpectrum,
    GlobeMatern52,
    HarmonicKernel,
    HarmonizableComponent,
    HarmonizableMixture,
    Invariant,
    MultiChannelConvolutional,
    Periodized,
    SphericalMatern32,
    SphericalMatern52,
)
from interdomain.sphere import Softplus
from interdomain.tables import (
    Additive,
    AdditiveFeatures,
    GroupFeatures,
    GroupIntercepts,
    NumericColumn,
)
from interdomain.transforms import Negation, Rotation

KINDS = ("diagonal", "full", "blocks", "low rank", "low-rank blocks")
"""The kinds of operators of Kuu that posteriors, KL divergences and compilers distinguish."""


@dataclass(frozen=True)
class Case:
    """A kernel and an inducing variable that belong together.

    :param name: Name of the case in the tests' names.
    :param build: Makes the kernel and the inducing variable, in GPflow's present default float.
    :param input_dim: Number of columns of X.
    :param kind: Of the operator of Kuu, one of :data:`KINDS`; of a diagonal one nothing needs a
        Cholesky factor.
    :param representative: Whether it stands for its class of inducing variables where what is
        tested does not depend on more than the class, as GPflow's own code does not.
    :param relative_jitter: Whether jitter is relative to the diagonal of Kuu.
    :param scale: Of the columns of X.
    :param kernel_rtol: How far two ways to compute the same entry of the kernel may differ.
    """

    name: str
    build: Callable[[], tuple[Kernel, InducingVariables]]
    input_dim: int
    kind: str = "diagonal"
    representative: bool = False
    kernel_rtol: float = 1e-8
    scale: float = 1.0
    relative_jitter: bool = False

    @property
    def diagonal(self) -> bool:
        return self.kind == "diagonal"


CASES: list[Case] = []
Build: TypeAlias = Callable[[], tuple[Kernel, InducingVariables]]


def case(
    name: str, input_dim: int, kind: str = "diagonal", **options: Any
) -> Callable[[Build], Build]:
    """List what the decorated function makes as a case."""

    def add(build: Build) -> Build:
        CASES.append(Case(name, build, input_dim, kind, **options))
        return build

    return add


@case("harmonics-arc-cosine-0", 3, kernel_rtol=1e-6)
def arc_cosine() -> tuple[Kernel, InducingVariables]:
    """The angle is the arc cosine of a number near one, and so the root of rounding errors."""
    kernel = ArcCosine(0, variance=0.7, weight_variances=[1.2, 0.5, 2.0], bias_variance=1.5)
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=3, max_degree=3)


@case("harmonics-active-dims", 4, representative=True)
def active_dims() -> tuple[Kernel, InducingVariables]:
    kernel = SphericalMatern32(
        variance=1.1, lengthscale=0.7, weight_variances=[0.8, 1.4], active_dims=[0, 2]
    )
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=3)


@case("harmonics-chosen", 4)
def chosen() -> tuple[Kernel, InducingVariables]:
    """Harmonics that fill no whole degree, in their own order."""
    kernel = SphericalMatern32(
        variance=1.1, lengthscale=0.7, weight_variances=[0.8, 0.1, 1.4], active_dims=[0, 3, 2]
    )
    chains = [[0, 0, 0], [1, 1, 3], [-2, 3, 3], [0, 0, 1], [0, 2, 4], [0, 1, 1], [-1, 1, 2]]
    return kernel, SphericalHarmonics(4, chains=chains, column_order=[1, 0, 2])


@case("harmonics-globe", 3, scale=25.0)
def globe() -> tuple[Kernel, InducingVariables]:
    """Latitude and longitude in degrees, in columns 2 and 0."""
    kernel = GlobeMatern52(variance=1.2, lengthscale=0.6, active_dims=[2, 0])
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=4)


@case("finite-rank-and-points", 2, "blocks")
def finite_rank_and_points() -> tuple[Kernel, InducingVariables]:
    first = ArcCosine(1, variance=0.7, active_dims=[1])
    second = gpflow.kernels.Matern32(variance=0.9, lengthscales=[0.6, 1.1])
    harmonics = SphericalHarmonics.for_kernel(first, input_dim=1, max_degree=6)
    kernel = FiniteRank(first, harmonics) + second
    return kernel, SumInducingVariables([harmonics, InducingPoints(POINTS)])


@case("harmonics-free-spectrum", 3)
def free_spectrum() -> tuple[Kernel, InducingVariables]:
    """Ends where the harmonics end, without degree 3, which the arc-cosine kernel does not have."""
    first = ArcCosine(1, variance=1.2, weight_variances=[0.6, 1.7], active_dims=[2, 0])
    kernel = FreeSpectrum.from_kernel(first, input_dim=2, max_degree=4)
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=4)


@case("activation-relu", 3, "full", relative_jitter=True)
def relu_units() -> tuple[Kernel, InducingVariables]:
    """The kernel has all of a ReLU's degrees and no others."""
    kernel = ArcCosine(1, variance=0.7, weight_variances=[1.2, 0.5, 2.0], bias_variance=1.5)
    return kernel, ActivationFeatures.random(3, 6, "relu", 2, seed=1)


@case("sum-of-harmonics", 3)
def sum_of_harmonics() -> tuple[Kernel, InducingVariables]:
    first = ArcCosine(1, variance=0.7, active_dims=[0, 1])
    second = SphericalMatern32(lengthscale=0.8, active_dims=[2])
    blocks = [
        SphericalHarmonics.for_kernel(first, input_dim=2, max_degree=4),
        SphericalHarmonics.for_kernel(second, input_dim=1, max_degree=3),
    ]
    return first + second, SumInducingVariables(blocks)


@case("sum-with-points", 2, "blocks", representative=True)
def sum_with_points() -> tuple[Kernel, InducingVariables]:
    first = ArcCosine(1, variance=0.7, active_dims=[1])
    second = gpflow.kernels.Matern32(variance=0.9, lengthscales=[0.6, 1.1])
    points = np.array([[-1.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [1.0, -1.0], [1.0, 1.0]])
    harmonics = SphericalHarmonics.for_kernel(first, input_dim=1, max_degree=6)
    return first + second, SumInducingVariables([harmonics, InducingPoints(points)])


POINTS = np.array([[0.9, 0.2], [0.4, -0.8], [-1.1, 1.5]])
"""Away from each other, from their images, and from the centres of the transformations."""


@case("harmonic-negations", 2, "blocks")
def harmonic_negations() -> tuple[Kernel, InducingVariables]:
    """Points of their own for each of four parts."""
    base = gpflow.kernels.Matern32(variance=1.2, lengthscales=[0.9, 1.3])
    kernel = HarmonicKernel(base, [Negation(0), Negation(1, centre=0.3)])
    Z = POINTS * np.array([1.0, 1.2, 0.8, 0.9])[:, None, None]
    return kernel, HarmonicInducingPoints(Z)


@case("harmonic-complete", 2, "blocks", representative=True)
def harmonic_rotation(complete: bool = True) -> tuple[Kernel, InducingVariables]:
    """Points that the parts share; if complete, those of the paired part have an image too."""
    base = gpflow.kernels.SquaredExponential(variance=1.2, lengthscales=0.9)
    kernel = HarmonicKernel(base, Rotation(3))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, POINTS, complete=complete)


case("harmonic-shared", 2, "blocks")(lambda: harmonic_rotation(complete=False))


@case("harmonic-nested", 2, "blocks")
def harmonic_nested() -> tuple[Kernel, InducingVariables]:
    base = gpflow.kernels.Matern52(variance=0.9, lengthscales=1.1)
    first = HarmonicKernel(base, Rotation(3, centre=[0.1, -0.2]))
    second = gpflow.kernels.SquaredExponential(variance=0.5, lengthscales=1.2)
    points = HarmonicInducingPoints(np.stack([POINTS, 0.8 * POINTS]))
    return first + second, SumInducingVariables([points, InducingPoints(1.1 * POINTS)])


@case("harmonic-stock-points", 2, "blocks")
def harmonic_stock_points() -> tuple[Kernel, InducingVariables]:
    """The parts as kernels on the data space, with GPflow's points of unequal numbers."""
    kernel = HarmonicKernel(gpflow.kernels.Matern32(variance=1.2, lengthscales=1.3), Rotation(3))
    blocks = [InducingPoints(POINTS), InducingPoints(1.1 * POINTS[:2])]
    return kernel, SumInducingVariables(blocks)


PATCHES = 1.2 * np.array([[1.0, 0.2], [-0.3, 1.1], [-1.0, -0.4], [0.3, -1.2]])


@case("patches", 6, "full", representative=True)
def patches() -> tuple[Kernel, InducingVariables]:
    """A case of patches of 3 x 2 pixels."""
    base = gpflow.kernels.SquaredExponential(variance=4.0, lengthscales=[1.6, 2.1])
    kernel = Convolutional(base, (3, 2), (2, 1), weights=[0.8, 1.3, 1.1, 0.6])
    return kernel, InducingPatches(PATCHES)


@case("activation-softplus", 4, "full", representative=True, relative_jitter=True)
def softplus_units() -> tuple[Kernel, InducingVariables]:
    kernel = SphericalMatern52(
        variance=1.1, lengthscale=0.9, weight_variances=[0.8, 1.4], active_dims=[0, 2]
    )
    return kernel, ActivationFeatures.random(2, 5, Softplus(3.0), 4, seed=0)


@case("channels", 4, "blocks")
def channels() -> tuple[Kernel, InducingVariables]:
    """A case of patches of 2 x 1 pixels, which two channels share."""
    first = gpflow.kernels.Matern52(variance=3.0, lengthscales=1.1)
    second = gpflow.kernels.SquaredExponential(variance=2.0, lengthscales=1.2)
    kernel = MultiChannelConvolutional([first, second], (2, 1, 2), (1, 1))
    return kernel, SumInducingVariables([InducingPatches([[-1.4], [-0.3], [0.6], [1.5]])] * 2)


@case("orbits", 2, "full", representative=True)
def orbits() -> tuple[Kernel, InducingVariables]:
    """The base kernel is not invariant itself."""
    base = gpflow.kernels.Matern32(variance=2.0, lengthscales=[0.9, 1.4])
    return Invariant(base, Rotation(3)), OrbitInducingPoints([*POINTS, [-0.6, -0.9]])


def trained_in_all(kernel: Kernel) -> Kernel:
    gpflow.set_trainable(kernel, True)
    return kernel


@case("fourier-features", 1, "full", representative=True)
def fourier_features() -> tuple[Kernel, InducingVariables]:
    """A complex B, and a zero among the frequencies."""
    options: dict[str, Any] = {"centre": 0.2, "scales": 1.1, "envelope": 0.1, "lag": 0.06}
    options["amplitudes"] = [[1.2, 0.4 + 0.5j], [0.4 - 0.5j, 0.9]]
    kernel = HarmonizableComponent([[0.15], [0.5]], **options)
    return trained_in_all(kernel), HarmonizableFourierFeatures([[0.0], [0.3], [0.6]])


@case("harmonizable-mixture", 2, "blocks")
def harmonizable_mixture() -> tuple[Kernel, InducingVariables]:
    """Unequal numbers of frequencies, in the kernel and in the features."""
    first = HarmonizableComponent(
        [[0.2, -0.1]], amplitudes=[1.5], centre=[0.3, -0.2], envelope=[0.015, 0.02], lag=0.05
    )
    second = HarmonizableComponent(
        [[0.1, 0.3], [-0.2, 0.2]],
        amplitudes=[[1.0, 0.3j], [-0.3j, 0.8]],
        centre=[-0.4, 0.5],
        envelope=0.015,
        lag=[[0.06, 0.01], [0.01, 0.05]],
    )
    blocks = [
        HarmonizableFourierFeatures([[0.2, -0.1], [0.0, 0.3]]),
        HarmonizableFourierFeatures([[0.1, 0.3], [-0.2, 0.2], [0.3, 0.0]]),
    ]
    return trained_in_all(HarmonizableMixture([first, second])), SumInducingVariables(blocks)


@case("interval-matern52", 1, "low rank", representative=True)
def interval_matern52() -> tuple[Kernel, InducingVariables]:
    kernel = gpflow.kernels.Matern52(variance=1.3, lengthscales=0.7)
    return kernel, VariationalFourierFeatures(-4.0, 3.5, 4)


class OneColumn(WholeRows):
    """GPflow's posteriors of several outputs call K of a sum's summands with all columns of X, and
    are wrong for stock kernels with ``active_dims`` there; this one selects its own."""

    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        return super().K(*self.slice(X, X2))


class OneColumnMatern12(OneColumn, gpflow.kernels.Matern12):
    pass


class OneColumnMatern32(OneColumn, gpflow.kernels.Matern32):
    pass


@case("interval-additive", 2, "low-rank blocks", representative=True)
def interval_additive() -> tuple[Kernel, InducingVariables]:
    first = OneColumnMatern12(variance=1.3, active_dims=[0])
    second = OneColumnMatern32(variance=0.7, lengthscales=0.8, active_dims=[1])
    kernel = first + second
    blocks = [VariationalFourierFeatures(-3.0, 3.5, 3), VariationalFourierFeatures(-4.0, 4.0, 5)]
    return kernel, SumInducingVariables(blocks)


@case("box-two-columns", 3, representative=True)
def box_of_two_columns() -> tuple[Kernel, InducingVariables]:
    base = gpflow.kernels.Matern52(variance=1.1, lengthscales=[0.9, 1.4])
    kernel = Periodized(base, [-3.0, -2.5], [3.0, 3.5], active_dims=[2, 0])
    return kernel, BoxFourierFeatures.for_kernel(kernel, 14)


@case("splines", 3, "full", representative=True)
def splines_of_two_columns() -> tuple[Kernel, InducingVariables]:
    first = gpflow.kernels.Matern12(variance=1.1, lengthscales=1.6, active_dims=[2])
    second = gpflow.kernels.Matern32(variance=0.9, lengthscales=2.4, active_dims=[0])
    return first * second, SplineFeatures([-4.0, -4.5], [4.5, 4.0], [6, 5], degree=2)


@case("cycle", 2)
def cycle() -> tuple[Kernel, InducingVariables]:
    """The period is shorter than the range of the rows."""
    base = gpflow.kernels.Matern52(variance=1.1, lengthscales=0.7)
    kernel = Periodized.cycle(base, 1.3, start=0.2, active_dims=[1])
    return kernel, BoxFourierFeatures.for_kernel(kernel, 7)


@case("fixed-places", 3, "full", representative=True)
def fixed_places() -> tuple[Kernel, InducingVariables]:
    kernel = gpflow.kernels.Matern32(variance=1.2, lengthscales=[0.9, 1.3], active_dims=[2, 0])
    return kernel, FixedPlaces(POINTS, [2, 0])


@case("places-times-splines", 3, "full", relative_jitter=True)
def places_times_splines() -> tuple[Kernel, InducingVariables]:
    kernel, places = fixed_places()
    time = gpflow.kernels.Matern32(variance=0.9, lengthscales=2.4, active_dims=[1])
    splines = SplineFeatures(-4.5, 4.0, 5, degree=2)
    return kernel * time, ProductInducingVariables([places, splines])


@case("product-of-features", 3, representative=True, relative_jitter=True)
def space_and_time() -> tuple[Kernel, InducingVariables]:
    """Some of the products, in an order of their own."""
    space = SphericalMatern52(variance=0.8, weight_variances=[0.6, 1.1], active_dims=[2, 0])
    base = gpflow.kernels.SquaredExponential(variance=1.3, lengthscales=1.2)
    time = Periodized(base, -4.0, 4.5, active_dims=[1])
    harmonics = SphericalHarmonics.for_kernel(space, input_dim=2, max_degree=3)
    factors = [harmonics, BoxFourierFeatures.for_kernel(time, 5)]
    return space * time, ProductInducingVariables.for_kernel(space * time, factors, 22)


@case("product-with-points", 2, "full", relative_jitter=True)
def harmonics_times_points() -> tuple[Kernel, InducingVariables]:
    """All products; points have all columns."""
    first = ArcCosine(1, variance=0.7, active_dims=[1])
    second = OneColumnMatern32(variance=1.1, lengthscales=1.3, active_dims=[0])
    harmonics = SphericalHarmonics.for_kernel(first, input_dim=1, max_degree=4)
    return first * second, ProductInducingVariables([harmonics, InducingPoints(POINTS)])


@case("effects", 3, representative=True)
def effects() -> tuple[Kernel, AdditiveFeatures]:
    """Main effects, and one of two columns."""
    columns = [NumericColumn([-2.0, 0.1, 2.5], [0.0, 0.6, 1.0]), NumericColumn([-3.0, 3.0])]
    kernel = Additive(
        columns, ["main", (0, 1)], variances=[0.9, 0.6, 0.4], lengthscales=0.4, active_dims=[2, 0]
    )
    return kernel, AdditiveFeatures(kernel, {(0,): 2, (1,): 2, (0, 1): [[1, 1], [2, 1]]})


class RoundedIntercepts(GroupIntercepts):
    """Intercepts of groups whose levels are numbers rounded."""

    def indices(self, X: TensorType) -> tf.Tensor:
        return super().indices(tf.round(X))


@case("groups", 3)
def groups() -> tuple[Kernel, GroupFeatures]:
    """Some rows have none of the levels. Nothing has a gradient to X."""
    kernel = RoundedIntercepts([-1, 0, 1], variance=0.8, active_dims=[1])
    return kernel, GroupFeatures(kernel)


REPRESENTATIVES = tuple(case for case in CASES if case.representative)
ONE_OF_EACH_KIND = tuple(
    next(case for case in REPRESENTATIVES if case.kind == kind) for kind in KINDS
)
FIRST_AND_LAST_KIND = ONE_OF_EACH_KIND[:1] + ONE_OF_EACH_KIND[-1:]
"""For what sees Kuu and Kuf as dense tensors alone: no structure, and the most of it."""
