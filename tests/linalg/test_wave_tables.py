"""Sums of waves from tables against sums of dense features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.core.pairs import structure_of
from interdomain.functionals import Areas, Blur, ByDegree, Derivative, Mean, Value
from interdomain.kernels import Functional
from interdomain.linalg.wave_tables import WaveTables
from interdomain.models import StructuredSGPR
from interdomain.sums import waves as wave_sums
from interdomain.sums.waves import ActedWaves

iv = idm.inducing_variables
NUM_ROWS = 60
ROWS = X = np.random.default_rng(0).uniform(-1, 1, size=(NUM_ROWS, 4))
Y = np.stack([np.sin(3 * X[:, 0]), X[:, 1] * X[:, 2]], axis=1)


def box(columns: Any, num_inducing: int, base: Any = gpflow.kernels.Matern32) -> Any:
    kernel = base(lengthscales=np.full(len(columns), 0.8))
    kernel = idm.kernels.Periodized.from_data(kernel, X[:, columns], active_dims=columns)
    return kernel, iv.BoxFourierFeatures.for_kernel(kernel, num_inducing)


def sum_of_one_box() -> Any:
    kernel, some = box([1, 3], 30)
    other = idm.kernels.Periodized(
        gpflow.kernels.Matern12(), kernel.lower, kernel.upper, active_dims=[1, 3]
    )
    more = iv.BoxFourierFeatures.for_kernel(other, 50)
    return kernel + other, iv.SumInducingVariables([some, more])


def product(num_inducing: int) -> Any:
    (time, time_waves), (space, space_waves) = box([2], 9), box([0, 3], 13)
    kernel = time * space
    factors = [time_waves, space_waves]
    if num_inducing:
        return kernel, iv.ProductInducingVariables.for_kernel(kernel, factors, num_inducing)
    return kernel, iv.ProductInducingVariables(factors)


def globe(degrees: Any, *kernels: Any, **options: Any) -> Any:
    """In the columns 3 and 0."""
    made = [kernel(lengthscale=0.3, active_dims=[3, 0]) for kernel in kernels]
    blocks = [iv.SphericalHarmonics(3, degrees, **options) for _ in made]
    if len(made) == 1:
        return made[0], blocks[0]
    return gpflow.kernels.Sum(made), iv.SumInducingVariables(blocks)


CHAINS = [[-3, 4], [0, 4], [1, 1], [2, 7]]
CASES = {
    "one column": lambda: box([2], 25),
    "two": lambda: box([3, 0], 60),
    "three": lambda: box([0, 1, 2], 90),
    "sum": sum_of_one_box,
    "all products": lambda: product(0),
    "some products": lambda: product(40),
    "globe": lambda: globe(range(8), idm.kernels.GlobeMatern32),
    "a constant": lambda: globe([0], idm.kernels.GlobeMatern32),
    "few harmonics": lambda: globe(
        None, idm.kernels.GlobeMatern12, chains=CHAINS, column_order=[1, 0]
    ),
    "two of the globe": lambda: globe(
        [1, 2, 5], idm.kernels.GlobeMatern12, idm.kernels.GlobeMatern52
    ),
}


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Tables of few features, too."""
    monkeypatch.setattr(wave_sums, "FEWEST", (1, 1, 1))
    yield monkeypatch


@pytest.mark.parametrize("case", CASES)
def test_sums_and_values(case: str) -> None:
    """With weights of both signs; the mean and the variance at any rows are the same the other way
    round. Of the globe up to both poles and the date line."""
    kernel, inducing_variable = CASES[case]()
    waves = structure_of(inducing_variable, kernel).waves
    assert waves is not None
    tables, rng = WaveTables(waves), np.random.default_rng(1)
    X = ROWS * ([180, 1, 1, 90] if "lobe" in case or "harm" in case else 1)
    phi = np.asarray(gpflow.covariances.Kuf(inducing_variable, kernel, X))
    assert waves.num_features == len(phi)
    weights = rng.normal(size=(NUM_ROWS, 3))
    found = tables.table(X, weights)
    found = (found + tables.table(X[:7], weights[:7])) - tables.table(X[:7], weights[:7])
    np.testing.assert_allclose(tables.gram(found[1]), (phi * weights[:, 1]) @ phi.T, atol=1e-10)
    np.testing.assert_allclose(tables.products(found), phi @ weights, atol=1e-10)
    mean, root = rng.normal(size=len(phi)), rng.normal(size=(len(phi), 5))
    both = [tables.linear_table(mean), tables.quadratic_table(root @ root.T)]
    values = tables.at(X, np.stack(both))
    np.testing.assert_allclose(values[0], mean @ phi, atol=1e-10)
    np.testing.assert_allclose(values[1], np.sum((root.T @ phi) ** 2, axis=0), atol=1e-9)


@pytest.mark.parametrize("mean", [None, gpflow.mean_functions.Linear(np.ones((4, 2)), np.ones(2))])
def test_statistics_of_a_model(few: pytest.MonkeyPatch, mean: Any) -> None:
    """The statistics of a model, also of rows that come from a generator."""
    kernel, inducing_variable = box([0, 3], 30)

    def statistics(data: Any) -> Any:
        arguments: dict[str, Any] = {"noise_variance": 0.1, "batch_size": 13, "progress": False}
        return StructuredSGPR(
            data, kernel, inducing_variable, mean_function=mean, **arguments
        ).statistics

    def batches() -> Iterator[Any]:
        yield from ((X[start : start + 9], Y[start : start + 9]) for start in range(0, 60, 9))

    by_tables = [statistics((X, Y)), statistics(batches)]
    few.setattr(wave_sums, "FEWEST", (1_000,) * 3)
    dense = statistics((X, Y)).sums
    for found in by_tables:
        assert found.num_rows == NUM_ROWS and set(found.sums) == set(dense)
        for name, array in dense.items():
            np.testing.assert_allclose(found.sums[name], array, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("complete", [True, False])
def test_predictions_of_many_rows(few: pytest.MonkeyPatch, complete: bool) -> None:
    prior, inducing_variable = sum_of_one_box()
    if complete:
        pairs = zip(prior.kernels, inducing_variable.inducing_variables, strict=True)
        prior = gpflow.kernels.Sum([idm.kernels.FiniteRank(*pair) for pair in pairs])
    mean = gpflow.mean_functions.Linear(np.ones((4, 2)), np.ones(2))
    model = StructuredSGPR(
        (X, Y), prior, inducing_variable, mean_function=mean, noise_variance=0.1, progress=False
    )
    rows = np.concatenate([X, X[::-1], X])[:, :4]
    assert len(rows) > inducing_variable.num_inducing and model.predictions_of_many()
    for method in ("predict_f", "predict_y"):
        found = idm.predict_in_batches(model, rows, method=method, batch_size=50, progress=False)
        for part, expected in zip(found, getattr(model, method)(rows), strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-9)
    few.setattr(wave_sums, "FEWEST", (1_000,) * 3)
    dense = StructuredSGPR((X, Y), prior, inducing_variable, noise_variance=0.1, progress=False)
    assert dense.predictions_of_many() is None


def test_other_features_have_none() -> None:
    (kernel, few), (other, more) = box([0, 3], 5), box([1, 2], 5)
    pairs = [
        box([0, 1, 2, 3], 9),
        (kernel + other, iv.SumInducingVariables([few, more])),  # of different columns
        (kernel * kernel, iv.ProductInducingVariables([few, few])),
        (kernel + gpflow.kernels.Matern32(), iv.SumInducingVariables([few, iv_points()])),
    ]
    for kernel, inducing_variable in pairs:
        assert structure_of(inducing_variable, kernel) is None


def iv_points() -> Any:
    return gpflow.inducing_variables.InducingPoints(X[:3])


REGIONS = Areas(X[:20], np.linspace(-1, 1, 20), np.arange(20) % 4)
BY_DEGREE = ByDegree(np.exp(-0.2 * np.arange(8)))
IN_BOX = [
    Value(),
    Derivative(2),
    Mean([0.3, 0.0, 0.2, 0.1]) - Value(),
    Derivative(0, 2) + 0.5 * Blur([0.01, 0.02, 0.0, 0.03]),
    -3 * REGIONS,
]
ON_GLOBE = [
    Derivative(3),
    Derivative(0),
    Mean([20.0, 0, 0, 5.0]) - BY_DEGREE,
    0.5 * BY_DEGREE,
    Areas(90 * X[:20], None, np.arange(20) % 4),
]


@pytest.mark.parametrize("case", CASES)
def test_sums_of_functionals(few: pytest.MonkeyPatch, case: str) -> None:
    """Rows with a number each: all sums of tables, with weights of both signs, against sums of
    dense features; one functional has no rows."""
    prior, inducing_variable = CASES[case]()
    is_globe = "lobe" in case or "harm" in case or "constant" in case
    numbers = np.arange(NUM_ROWS) % 5
    numbers[numbers == 1] = 3
    rows = ROWS * ([180, 1, 1, 90] if is_globe else 1)
    rows[numbers == 4, 0] = np.arange(NUM_ROWS)[numbers == 4] % 4
    rows = np.concatenate([rows, numbers[:, None]], axis=1)
    kernel = Functional(prior, ON_GLOBE if is_globe else IN_BOX)
    structure = structure_of(inducing_variable, kernel)
    assert isinstance(structure, ActedWaves) and structure.size == inducing_variable.num_inducing
    tables, rng = structure.tables(), np.random.default_rng(1)
    phi = np.asarray(gpflow.covariances.Kuf(inducing_variable, kernel, rows))
    weights, mean = rng.normal(size=(NUM_ROWS, 3)), rng.normal(size=len(phi))
    found = tables.table(rows, weights)
    found = (found + tables.table(rows[:7], weights[:7])) - tables.table(rows[:7], weights[:7])
    root = rng.normal(size=(len(phi), 5))
    both = [tables.linear_table(mean), tables.quadratic_table(root @ root.T)]
    pairs = [
        (tables.gram(found[1]), (phi * weights[:, 1]) @ phi.T),
        (tables.products(found), phi @ weights),
        (tables.products_of_sums(found[2], mean), (phi * weights[:, 2]) @ (phi.T @ mean)),
        (tables.at(rows, np.stack(both)), [mean @ phi, np.sum((root.T @ phi) ** 2, axis=0)]),
    ]
    for values, expected in pairs:
        np.testing.assert_allclose(values, expected, atol=1e-9 * (1 + np.max(np.abs(expected))))


@pytest.mark.parametrize(
    "functional",
    [
        Derivative(0) + Value(),  # a sine and a cosine
        Areas(X[:3]) - Value(),
        Mean(width_columns=[1, None, None]),  # another factor for each row
        ByDegree([1.0]),
    ],
)
def test_functionals_without_tables(few: pytest.MonkeyPatch, functional: Any) -> None:
    kernel, inducing_variable = box([0, 2], 30)
    assert structure_of(inducing_variable, Functional(kernel, [Value(), functional])) is None
    few.setattr(wave_sums, "FEWEST", (100,) * 3)
    assert structure_of(inducing_variable, Functional(kernel, Value())) is None


def test_degrees_without_factors(few: pytest.MonkeyPatch) -> None:
    kernel, inducing_variable = CASES["two of the globe"]()
    with pytest.raises(ValueError, match="^factors must have 6 entries"):
        structure_of(inducing_variable, Functional(kernel, ByDegree([1.0, 2.0])))
