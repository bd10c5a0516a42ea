"""Constructors name the argument that has a value of a wrong kind, where users trip."""

import functools
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.kernels import Matern32

import interdomain as idm

X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
KERNELS, FEATURES, TRANSFORMS = idm.kernels, idm.inducing_variables, idm.transforms
Harmonics, Activations = FEATURES.SphericalHarmonics, FEATURES.ActivationFeatures
HarmonicPoints = FEATURES.HarmonicInducingPoints
ZONAL = KERNELS.SphericalMatern52()
HARMONICS = Harmonics.for_kernel(ZONAL, 2, max_degree=2)
HARMONIC = KERNELS.HarmonicKernel(Matern32(), TRANSFORMS.Negation())
GAUSSIAN = gpflow.likelihoods.Gaussian()


def svgp(**arguments: Any) -> idm.models.SVGP:
    q = idm.models.JointQ(ZONAL, HARMONICS)
    return idm.models.SVGP(**({"kernel": ZONAL, "likelihood": GAUSSIAN, "q": q} | arguments))


def random_units(**arguments: Any) -> Any:
    some = {"input_dim": 2, "num_inducing": 3, "activation": "relu", "max_degree": 4}
    return Activations.random(**(some | arguments))


STRUCTURED = functools.partial(idm.models.StructuredSGPR, (X, X), ZONAL, HARMONICS)
VECCHIA = functools.partial(idm.models.VecchiaSGPR, (X, X), local_kernel=Matern32())
NO_MEANS = ("zero", 0.5, [1.0], Matern32)
NO_NUMBERS = ("radians", [1, 2], Matern32, Matern32(), {}, object(), -1, 0.5)
NO_INTEGERS = (*NO_NUMBERS, None)
NO_LISTS = ("radians", [1, 2], Matern32, None, object(), 3, np.ones((2, 2)), ["a"])

# By the name of the argument: constructors with one argument, and wrong values of it.
WRONG: list[tuple[str, Callable[[Any], Any], tuple[Any, ...]]] = [
    ("transforms", TRANSFORMS.Product, (*NO_LISTS, TRANSFORMS.Negation, Matern32())),
    ("transforms", lambda wrong: KERNELS.HarmonicKernel(Matern32(), wrong), NO_LISTS),
    ("transforms", lambda wrong: KERNELS.Invariant(Matern32(), wrong), NO_LISTS),
    ("transforms", lambda wrong: idm.models.HVGP(Matern32(), GAUSSIAN, X, wrong), NO_LISTS),
    ("components", KERNELS.HarmonizableMixture, (*NO_LISTS, Matern32())),
    ("components", KERNELS.SpectralMixture, (*NO_LISTS, Matern32())),
    ("base_kernels", lambda wrong: KERNELS.ChannelAdditive(wrong, (1, 1)), NO_LISTS),
    ("base_kernels", lambda v: KERNELS.MultiChannelConvolutional(v, (2, 2, 2), (1, 1)), NO_LISTS),
    ("inputs", lambda wrong: KERNELS.GlobeMatern52(inputs=wrong), ("radians", 1, None)),
    ("dimension", KERNELS.LocallyStationaryGaussian, NO_INTEGERS),
    ("variance", lambda wrong: KERNELS.LocallyStationaryGaussian(variance=wrong), ((), "a", -1.0)),
    ("input_dim", lambda wrong: random_units(input_dim=wrong), NO_INTEGERS),
    ("num_inducing", lambda wrong: random_units(num_inducing=wrong), NO_INTEGERS),
    ("seed", lambda wrong: random_units(seed=wrong), NO_INTEGERS),
    ("seed", lambda v: Activations.from_data(ZONAL, X, 3, "relu", 4, seed=v), NO_INTEGERS),
    ("seed", lambda wrong: HarmonicPoints.from_data(HARMONIC, X, 3, seed=wrong), NO_INTEGERS),
    ("num_components", lambda wrong: HarmonicPoints(X, wrong), NO_NUMBERS),
    ("input_dim", lambda wrong: Harmonics.for_kernel(ZONAL, wrong, 2), NO_INTEGERS),
    ("max_degree", lambda wrong: Harmonics.for_kernel(ZONAL, 2, wrong), NO_INTEGERS),
    ("max_degree", lambda v: Harmonics.for_data(ZONAL, X, 5, max_degree=v), NO_NUMBERS),
    ("kernel", lambda wrong: KERNELS.FiniteRank(wrong, HARMONICS), (*NO_LISTS, Matern32())),
    ("inducing_variable", lambda wrong: KERNELS.FiniteRank(ZONAL, wrong), NO_LISTS),
    ("kernel", lambda wrong: svgp(kernel=wrong), NO_LISTS),
    ("mean_function", lambda wrong: svgp(mean_function=wrong), NO_MEANS),
    ("mean_function", lambda wrong: STRUCTURED(mean_function=wrong), NO_MEANS),
    ("mean_function", lambda wrong: VECCHIA(mean_function=wrong), NO_MEANS),
    ("seed", lambda wrong: VECCHIA(seed=wrong), NO_INTEGERS),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_kinds(number: int) -> None:
    name, make, values = WRONG[number]
    for value in values:
        with pytest.raises(ValueError, match=rf"^{name}\b"):
            make(value)
            pytest.fail(f"{name}={value!r} was taken")


ZONAL_KERNELS = [
    getattr(KERNELS, name)
    for name in sorted(KERNELS.__all__)
    if issubclass(getattr(KERNELS, name), KERNELS.ZonalKernel) and name != "ZonalKernel"
]


@pytest.mark.parametrize("kernel", ZONAL_KERNELS, ids=lambda kernel: kernel.__name__)
def test_lengthscales_of_zonal_kernels(kernel: Any) -> None:
    """A lengthscale for each column is replaced by a weight variance; on the globe, by a number."""
    remedy = "lengthscale instead" if kernel.__name__.startswith("Globe") else "weight_variances"
    message = (
        rf"^lengthscales must not be passed to {kernel.__name__}, found \[1, 2\]; pass {remedy}"
    )
    with pytest.raises(TypeError, match=message):
        kernel(lengthscales=[1, 2])


def test_a_number_of_harmonics() -> None:
    with pytest.raises(
        ValueError, match=r"^max_degree must .* for_data\(kernel, X, num_inducing\)"
    ):
        Harmonics.for_kernel(ZONAL, 300)


@pytest.mark.parametrize(
    "make",
    [
        lambda X: KERNELS.Periodized.from_data(Matern32(), X),
        lambda X: FEATURES.SplineFeatures.from_data(X, 5, 2),
        lambda X: FEATURES.VariationalFourierFeatures.from_data(X[:, 1:], 5),
        lambda X: FEATURES.FixedPlaces.from_data(X),
        lambda X: Harmonics.for_data(ZONAL, X, 5),
        lambda X: Activations.from_data(ZONAL, X, 3, "relu", 4),
        lambda X: HarmonicPoints.from_data(HARMONIC, X, 3),
    ],
)
def test_rows_that_are_not_finite(make: Callable[[Any], Any]) -> None:
    """The error names the first row with NaN or infinity."""
    for value in (np.nan, np.inf):
        wrong = X.copy()
        wrong[[7, 9], 1] = value
        with pytest.raises(ValueError, match=rf"^X must be finite, found {value} in row 7 "):
            make(wrong)
