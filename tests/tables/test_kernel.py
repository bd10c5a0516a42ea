"""Additive kernels: products of zero-mean kernels of columns, against sums over images."""

import warnings
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern12, Matern32, Matern52, SquaredExponential

from interdomain.linalg.periodic import wave_variances, zero_mean_covariances
from interdomain.tables import Additive, CategoricalColumn, NumericColumn
from tests.conformance.helpers import assert_refused
from tests.families.waves.references import SHAPES

INTEGRALS = {
    Matern12: 2.0,
    Matern32: 4 / np.sqrt(3),
    Matern52: 16 / (3 * np.sqrt(5)),
    SquaredExponential: np.sqrt(2 * np.pi),
}
"""The integral of each kernel over all distances, in lengthscales."""


def unit(kind: type, ratio: float, lags: np.ndarray) -> np.ndarray:
    """A kernel summed over its images, without its mean over a period of one; of variance one."""
    images = np.arange(-int(np.ceil(40 * ratio)) - 2, int(np.ceil(40 * ratio)) + 3)
    distances = np.abs(np.append(0.0, lags.ravel())[:, None] + images)
    total = np.sum(SHAPES[kind.__name__](distances / ratio), axis=-1) - ratio * INTEGRALS[kind]
    return np.reshape(total[1:] / total[0], lags.shape)


ORDERS = {Matern12: 0.5, Matern32: 1.5, Matern52: 2.5, SquaredExponential: np.inf}
KINDS = tuple(ORDERS)
LAGS = np.array([0.0, 0.03, 0.21, 0.5, 0.77, 1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_column_kernels_are_sums_over_images(kind: type) -> None:
    for ratio in (0.05, 0.2, 0.5):
        found = zero_mean_covariances(
            ORDERS[kind], tf.constant(ratio, tf.float64), tf.constant(LAGS)
        )
        np.testing.assert_allclose(found, unit(kind, ratio, LAGS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_wave_variances_are_fourier_coefficients(kind: type) -> None:
    """The variance of the cosine of j periods: ``int k(t) cos(2 pi j t) dt`` over a period, by the
    rectangle rule, which is exact but for aliases."""
    lags = np.arange(4096) / 4096
    for ratio in (0.1, 0.4):
        kernel = unit(kind, ratio, lags)
        found = wave_variances(ORDERS[kind], tf.constant([ratio], tf.float64), 3)[0].numpy()
        for j, value in enumerate(found, start=1):
            coefficient = np.mean(kernel * np.cos(2 * np.pi * j * lags))
            # Matern-1/2 has aliases of one over the number of points squared.
            np.testing.assert_allclose(value, coefficient, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_lengthscales_leave_the_first_wave(dtype: type) -> None:
    """Variance one, and finite gradients, whatever the lengthscale."""
    ratios = tf.constant([1.0, 3.0, 100.0], dtype)
    for kind in KINDS:
        with tf.GradientTape() as tape:
            tape.watch(ratios)
            values = wave_variances(ORDERS[kind], ratios, 40)
        assert np.all(np.isfinite(tape.gradient(values, ratios)))
        total = 2 * np.sum(values, axis=1)
        np.testing.assert_allclose(total, 1.0, rtol=0.02 if kind is Matern12 else 1e-4)


def table() -> tuple[Additive, np.ndarray]:
    """Two numeric columns and one of categories, of which a value is none of the levels."""
    columns = [
        NumericColumn([-1.0, 0.0, 3.0], [0.0, 0.5, 1.0], margin=0.5, label="age"),
        NumericColumn([0.0, 2.0], margin=1.0, label="height"),
        CategoricalColumn([3.0, 7.0, 8.0], label="place"),
    ]
    kernel = Additive(
        columns,
        ["main", ("age", "place"), (1, 0), (0, 1, 2)],
        variances=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
        constant_variance=0.3,
        lengthscales=[0.4, 0.7],
        kernel_class=Matern32,
    )
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(-1, 3, 8), rng.uniform(0, 2, 8), [3, 7, 8, 8, 5, 3, 7, 5.0]], axis=-1)
    return kernel, X


def column_kernels(X: np.ndarray) -> list[np.ndarray]:
    """The kernels of the columns of :func:`table`, ``[N, N]`` each."""
    age = np.interp(X[:, 0], [-1, 0, 3], [0, 0.5, 1]) / 1.5
    height = X[:, 1] / 2 / 2
    place = X[:, 2]
    same = place[:, None] == place
    known = np.isin(place, [3.0, 7.0, 8.0])
    among = np.where(same, 1.0, -1 / 2)  # three levels, which add up to zero
    categories = np.where(np.outer(known, known), among, np.outer(~known, ~known).astype(float))
    return [
        unit(Matern32, 0.4 / 1.5, age[:, None] - age),
        unit(Matern32, 0.7 / 2.0, height[:, None] - height),
        categories,
    ]


def test_sum_of_products_of_column_kernels() -> None:
    kernel, X = table()
    age, height, place = column_kernels(X)
    assert kernel.effects == ((0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2))
    assert kernel.effect_names[3:] == ("age x height", "age x place", "age x height x place")
    products = [age, height, place, age * height, age * place, age * height * place]
    parts = [np.full([8, 8], 0.3)]
    parts += [v * p for v, p in zip([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], products, strict=True)]
    np.testing.assert_allclose(kernel(X), np.sum(parts, axis=0), rtol=0, atol=1e-8)
    expected = np.sum(parts, axis=0)
    np.testing.assert_allclose(kernel(X, full_cov=False), np.diag(expected), rtol=1e-8)
    np.testing.assert_allclose(kernel(X[:3], X[3:]), expected[:3, 3:], rtol=0, atol=1e-8)


def test_separate_lengthscales() -> None:
    """Separate lengthscales give as many kernels with their own lengthscales."""
    kernel, X = table()
    apart = Additive(
        kernel.columns,
        kernel.effects,
        kernel_class=Matern32,
        lengthscales=[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
        separate_lengthscales=True,
    )
    assert apart.lengthscale_columns[2:4] == (((0, 1), 0), ((0, 1), 1))
    scales = [0.2, 0.3, [], [0.4, 0.5], 0.6, [0.7, 0.8]]
    alone = [
        Additive(kernel.columns, [effect], kernel_class=Matern32, lengthscales=own)
        for effect, own in zip(kernel.effects, scales, strict=True)
    ]
    expected = 1 + sum(other(X) - 1 for other in alone)  # each has a constant
    np.testing.assert_allclose(apart(X), expected, rtol=1e-12)


def test_positions() -> None:
    """Interpolated between knots; beyond, continued by a quarter of the margin, and then held."""
    column = NumericColumn([-1.0, 0.0, 3.0], [0.0, 0.5, 1.0], margin=0.4)
    values = np.array([-1.0, -0.5, 0.0, 1.5, 3.0, 3.3, 9.0, -1.1, -9.0])
    expected = [0.0, 0.25, 0.5, 0.75, 1.0, 1.05, 1.1, -0.05, -0.1]
    np.testing.assert_allclose(column.positions_of(values), expected, atol=1e-15)
    matrix = values.reshape(3, 3)
    np.testing.assert_allclose(column.positions_of(matrix), np.reshape(expected, [3, 3]))


def test_quantiles_where_rows_are_spread_unevenly() -> None:
    rng = np.random.default_rng(0)
    heavy = np.append(rng.normal(size=999), 1e4)
    column = NumericColumn.from_data(heavy)
    positions = column.positions_of(np.quantile(heavy, [0.25, 0.5, 0.75])).numpy()
    np.testing.assert_allclose(positions, [0.25, 0.5, 0.75], atol=0.01)
    light = NumericColumn.from_data(rng.uniform(size=1000))
    assert len(light.knots) == 2
    assert len(NumericColumn.from_data(rng.uniform(size=30)).knots) == 2
    assert len(NumericColumn.from_data(rng.normal(size=1000)).knots) > 20
    # Of a value that half of the rows have, the quantiles have one knot.
    half = np.where(np.arange(1000) % 2, 0.0, rng.uniform(size=1000))
    column = NumericColumn.from_data(half)
    assert np.all(np.diff(column.knots) > 0) and np.all(np.diff(column.positions) > 0)


def test_errors() -> None:
    kernel, X = table()
    rows = np.random.default_rng(2).uniform(size=[20, 3])
    alike, missing = rows.copy(), rows.copy()
    alike[:, 1], missing[:5, 1] = 1.5, np.nan

    def made(X: np.ndarray = rows, **options: Any) -> Callable[[], Additive]:
        return lambda: Additive.from_data(X, names=["age", "height", "place"], **options)

    assert_refused(
        [
            (made(alike), "'height' must vary, found one value; leave the column out"),
            (made(missing), "in column 'height'"),
            (made(effects=[(0, 3)]), "effects must name columns .*found 3"),
            (made(effects=["main", (1,)]), "effects must be .* different .*found 'height'"),
            (lambda: CategoricalColumn([1.0, 1.0, 2.0]), "levels must be from 2"),
            (lambda: kernel(X[:, :2]), "X must have 3 columns, those of the table, found 2"),
        ]
    )


class Frame:
    """A minimal data frame."""

    columns = ("age", "site")

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.array([[0.0, 1.0], [0.5, 2.0], [1.0, 1.0], [2.0, 2.0]])


def test_levels_that_float32_does_not_tell_apart() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        with pytest.raises(ValueError, match="different in float32, found 1 among 2"):
            CategoricalColumn([2.0**24, 2.0**24 + 1])


def test_names_of_a_data_frame() -> None:
    kernel = Additive.from_data(Frame(), categorical=["site"])
    assert kernel.names == ("age", "site")
    assert [type(column) for column in kernel.columns] == [NumericColumn, CategoricalColumn]
    assert Additive.from_data(Frame(), names=["a", "b"]).names == ("a", "b")


def test_levels_that_a_column_does_not_have() -> None:
    """The function there has the prior's variance; a typo is told."""
    kernel = Additive([CategoricalColumn([1.0, 2.0, 4.0], label="site")], variances=2.0)
    X = np.array([[1.0], [2.0], [1.5], [7.0]])
    with pytest.warns(UserWarning, match=r"site: \[1.5, 7. \] are none of its 3 levels") as caught:
        covariance = kernel(X).numpy() - kernel.constant_variance.numpy()
    assert caught[0].filename == __file__
    assert abs(covariance[2, 0]) < 1e-12 and abs(covariance[2, 2] - covariance[0, 0]) < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(X[:2])
