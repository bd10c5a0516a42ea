"""Functionals of waves, and of the features of an interval: against values at many points."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32, Matern52

from interdomain.core.pairs import Kuf_in_domain
from interdomain.functionals import Areas, Blur, ByDegree, Derivative, Mean, Value
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    ProductInducingVariables,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import Functional, Periodized
from tests.conformance.helpers import assert_refused
from tests.families.waves.interval_cases import LOWER, UPPER
from tests.functional_oracles import acted, blurs, features_of, means, slopes, with_numbers

X = np.random.default_rng(0).uniform(-1, 1, size=(9, 3))
TOLERANCES: dict[str, Any] = {"rtol": 1e-8, "atol": 1e-8}


def box(columns: Any, count: int) -> Any:
    base = Matern32(lengthscales=np.full(len(columns), 0.6))
    kernel = Periodized(base, [-1.6] * len(columns), [1.9] * len(columns), active_dims=columns)
    return kernel, BoxFourierFeatures.for_kernel(kernel, count)


def product() -> Any:
    (time, time_waves), (space, space_waves) = box([2], 7), box([1, 0], 11)
    return time * space, ProductInducingVariables([time_waves, space_waves])


def both() -> Any:
    (one, waves), (other, products) = box([1], 9), product()
    return one + other, SumInducingVariables([waves, products])


CASES = {
    "one": lambda: box([1], 15),
    "two": lambda: box([2, 0], 40),
    "three": lambda: box([1, 2, 0], 40),
}
CASES |= {"product": product, "sum": both}


@pytest.mark.parametrize("case", CASES)
def test_waves(case: str) -> None:
    prior, waves = CASES[case]()
    phi = features_of(prior, waves)
    variances, widths = np.array([0.001, 0.0, 0.004]), np.array([0.0, 0.7, 0.4])
    functionals = [Derivative(2), Derivative(1, 2), Mean(widths), Blur(variances)]
    functionals.append(2 * Mean(widths) - Value() + Derivative(0))
    rows = with_numbers([X] * len(functionals))
    found = acted(prior, waves, functionals, rows)
    expected: list[Any] = [
        lambda x: slopes(phi, x, 2, 1, 3e-3),
        lambda x: slopes(phi, x, 1, 2, 3e-3),
        lambda x: means(phi, x, widths),
        lambda x: blurs(phi, x, np.sqrt(variances)),
        lambda x: 2 * means(phi, x, widths) - phi(x) + slopes(phi, x, 0, 1, 3e-3),
    ]
    for number, oracle in enumerate(expected):
        some = rows[:, 3] == number
        np.testing.assert_allclose(found[:, some], oracle(rows[some, :3]), **TOLERANCES)


@pytest.mark.parametrize("case", ["two", "product"])
def test_widths_of_rows(case: str) -> None:
    """A column of widths stands among the inputs; a width of zero is a value."""
    prior, waves = CASES[case]()
    widths = np.random.default_rng(1).uniform(0, 0.8, size=9)
    widths[:2] = 0.0
    rows = np.insert(X, 1, widths, axis=1)
    mean = Mean([0.3, 0.0, 0.0], width_columns=[None, None, 1])
    found = acted(prior, waves, mean, rows)
    of_rows = np.stack([np.full(9, 0.3), np.zeros(9), widths], axis=1)
    np.testing.assert_allclose(found, means(features_of(prior, waves), X, of_rows), **TOLERANCES)


def test_wave_of_one_period_over_a_period() -> None:
    """The mean is zero, up to rounding, for means that reach beyond the box too."""
    prior, waves = box([0], 11)
    found = acted(prior, waves, Mean([3.5]), X[:, :1])
    np.testing.assert_allclose(found[1:], 0, atol=1e-15)


def interval(order: int, **options: Any) -> Any:
    kernel = [gpflow.kernels.Matern12, Matern32, Matern52][order](lengthscales=0.8, **options)
    return kernel, VariationalFourierFeatures(LOWER, UPPER, 4)


INSIDE = np.linspace(LOWER + 0.5, UPPER - 0.5, 7)[:, None]
ENDS = np.array([LOWER - 0.4, LOWER - 0.02, LOWER + 0.03, UPPER - 0.01, UPPER + 0.6])[:, None]


@pytest.mark.parametrize("degree", [0, 3])
def test_interval(degree: int) -> None:
    prior = Matern52(lengthscales=0.8, active_dims=[1])
    features = VariationalFourierFeatures(LOWER, UPPER, 4, polynomial_degree=degree)
    phi = features_of(prior, features)
    inputs = np.insert(INSIDE, 0, 5.0, axis=1)
    expected = {
        Derivative(1): slopes(phi, inputs, 1, 1, 2e-3),
        Derivative(1, 2): slopes(phi, inputs, 1, 2, 2e-3),
        Derivative(0): np.zeros([features.num_inducing, 7]),
        Mean([0.0, 0.9]): means(phi, inputs, [0.0, 0.9]),
        Blur([0.0, 0.003]): blurs(phi, inputs, [0.0, np.sqrt(0.003)]),
    }
    for functional, each in expected.items():
        np.testing.assert_allclose(acted(prior, features, functional, inputs), each, **TOLERANCES)
    widths = np.linspace(0.0, 0.9, 7)
    rows = np.concatenate([inputs, widths[:, None]], axis=1)
    found = acted(prior, features, Mean(width_columns=[None, 2]), rows)
    each = means(phi, inputs, np.stack([np.zeros(7), widths], axis=1))
    np.testing.assert_allclose(found, each, **TOLERANCES)


def test_beyond_the_interval() -> None:
    """At rows that need f outside, f continues as the prior does."""
    prior, features = interval(2)
    phi = features_of(prior, features)
    rows = np.concatenate([INSIDE, ENDS])
    found = acted(prior, features, Derivative(0), rows)
    np.testing.assert_allclose(found, slopes(phi, rows, 0, 1, 1e-3), rtol=1e-5, atol=1e-5)
    found = acted(prior, features, [Mean([0.3], num_points=64)], rows)
    np.testing.assert_allclose(found, means(phi, rows, [0.3], 600), rtol=1e-5, atol=1e-5)
    found = acted(prior, features, Blur([0.01], num_points=64), rows)
    np.testing.assert_allclose(found, blurs(phi, rows, [0.1], 1_000), rtol=1e-4, atol=1e-4)


def test_training_rows_depend_on_no_parameter() -> None:
    """Of slopes and means; the boxes of all means are in the interval."""
    prior, features = interval(1)
    kernel = Functional(prior, [Derivative(0), Mean([0.4])])
    rows = with_numbers([INSIDE, INSIDE])
    with tf.GradientTape() as tape:
        found = Kuf_in_domain(features, kernel, tf.constant(rows))
    assert all(part is None for part in tape.gradient(found, kernel.trainable_variables))
    np.testing.assert_allclose(found, gpflow.covariances.Kuf(features, kernel, rows))


def test_compiled_with_gradients_and_in_float32() -> None:
    """Of a number of rows that is not known, with gradients with respect to the inputs."""
    prior, waves = box([2, 0], 24)
    kernel = Functional(prior, [Derivative(0), Mean([0.2, 0.0, 0.1]), Blur(0.02), Value()])
    rows = with_numbers([X] * 4)

    @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float64)], autograph=False)
    def both(rows: tf.Tensor) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(rows)
            values = gpflow.covariances.Kuf(waves, kernel, rows)
        return values, tape.gradient(values, rows)

    values, gradient = both(tf.constant(rows))
    expected = gpflow.covariances.Kuf(waves, kernel, rows).numpy()
    np.testing.assert_allclose(values, expected, atol=1e-12)

    def total(inputs: np.ndarray) -> np.ndarray:
        inputs = np.concatenate([inputs, np.tile(rows[:, 3:], [len(inputs) // len(rows), 1])], 1)
        return np.sum(gpflow.covariances.Kuf(waves, kernel, inputs), axis=0)[None]

    for column in (0, 2):
        along = slopes(total, rows[:, :3], column, 1, 3e-3)
        np.testing.assert_allclose(gradient[:, column], along[0], rtol=1e-6, atol=1e-6)
    assert both(tf.zeros([0, 4], tf.float64))[0].shape == (waves.num_inducing, 0)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        prior, waves = box([2, 0], 24)
        single = gpflow.covariances.Kuf(
            waves, Functional(prior, kernel.functionals), rows.astype(np.float32)
        )
        assert single.dtype == tf.float32
        np.testing.assert_allclose(single, expected, rtol=1e-4, atol=2e-4)


def test_refusals() -> None:
    prior, waves = box([0], 5)
    regions = Areas(X[:, :1], regions=np.arange(9) % 2)
    found = acted(prior, waves, regions, [[1.0], [0.0]])
    phi = features_of(prior, waves)(X[:, :1])
    np.testing.assert_allclose(found.T, [phi[:, 1::2].mean(axis=1), phi[:, ::2].mean(axis=1)])
    assert_refused([(lambda: acted(prior, waves, ByDegree([1.0]), X[:, :1]), "no degrees")])
