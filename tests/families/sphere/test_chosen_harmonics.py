"""SphericalHarmonics of single chains: what a part of the whole degrees would be."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.covariances import Kuu_operator, Kvu
from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import (
    SphericalMatern12,
    SphericalMatern52,
)
from tests.conformance.helpers import assert_close, assert_same_objective

X = np.random.default_rng(0).normal(size=(9, 3))
Y = np.sin(X[:, :1])
ALL = SphericalHarmonics(4, range(4)).chains


def matern() -> SphericalMatern52:
    return SphericalMatern52(
        variance=1.3, lengthscale=0.8, weight_variances=[0.6, 1.7, 0.3], bias_variance=0.8
    )


def some(seed: int, count: int = 12, order: tuple[int, ...] | None = None) -> SphericalHarmonics:
    chains = np.random.default_rng(seed).permutation(ALL)[:count]
    return SphericalHarmonics(4, chains=chains, column_order=order)


def rows_of(part: SphericalHarmonics, whole: SphericalHarmonics) -> list[int]:
    places = {tuple(chain): row for row, chain in enumerate(whole.chains.tolist())}
    return [places[tuple(chain)] for chain in part.chains.tolist()]


@pytest.mark.parametrize("order", [None, (2, 0, 1)])
def test_covariances_are_rows_of_those_of_whole_degrees(order: tuple[int, ...] | None) -> None:
    kernel, part = matern(), some(1, order=order)
    whole = SphericalHarmonics(4, range(4), column_order=order)
    rows = rows_of(part, whole)
    assert rows != sorted(rows) and part.num_inducing == 12
    variables = (kernel.weight_variances, kernel.bias_variance)
    inputs = tf.Variable(X)
    weights = np.random.default_rng(2).normal(size=(12, 9))
    assert_same_objective(
        lambda: tf.reduce_sum(weights * Kuf(part, kernel, inputs)),
        lambda: tf.reduce_sum(weights * tf.gather(Kuf(whole, kernel, inputs), rows)),
        (inputs, *(variable.unconstrained_variable for variable in variables)),
        rtol=1e-11,
    )
    assert_close(Kuf(part, kernel, X), Kuf(whole, kernel, X).numpy()[rows], rtol=1e-12)
    diagonal = np.diag(Kuu(whole, kernel))[rows]
    np.testing.assert_allclose(Kuu(part, kernel), np.diag(diagonal), rtol=1e-12)
    np.testing.assert_allclose(Kuu_operator(part, kernel).diag_part(), diagonal, rtol=1e-12)
    eigenvalues = kernel.eigenvalues(4, range(4)).numpy()
    expected = 1 / (1.3 * eigenvalues[np.abs(part.chains[:, -1])])
    np.testing.assert_allclose(diagonal, expected, rtol=1e-12)


def test_column_order_is_that_of_permuted_columns() -> None:
    order = (2, 0, 1)
    permuted = matern()
    permuted.weight_variances.assign(permuted.weight_variances.numpy()[list(order)])
    expected = Kuf(some(1), permuted, X[:, order])
    assert_close(Kuf(some(1, order=order), matern(), X), expected, rtol=1e-12)
    # Whole degrees are other functions, too, and span the same space.
    whole = [SphericalHarmonics(4, [0, 2], column_order=c) for c in (None, order)]
    explained = [tf.matmul(f, f, transpose_a=True) for f in (Kuf(u, matern(), X) for u in whole)]
    assert_close(*explained, rtol=1e-12)


def test_eigenvalues_that_single_precision_cannot_invert() -> None:
    """On the sphere in 31 dimensions they fall by a factor of ten or more from degree to degree:
    there is no direction in which more than the prior variance is explained."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        weights = np.array([3.0, 3.0, *[1e-4] * 28])
        kernel = SphericalMatern12(weight_variances=weights, bias_variance=0.3, lengthscale=0.15)
        inputs = np.random.default_rng(4).normal(size=(100, 30)).astype(np.float32)
        harmonics = SphericalHarmonics.for_data(kernel, inputs, 1_000)
        assert 6 < max(harmonics.degrees) < 15
        Kff, features = kernel(inputs).numpy(), Kuf(harmonics, kernel, inputs).numpy()
        assert features.dtype == Kff.dtype == np.float32
        inverse = 1 / Kuu_operator(harmonics, kernel).diag_part().numpy()
        left = Kff - features.T @ (features * inverse[:, None])
        assert np.linalg.eigvalsh(left.astype(float))[0] > -200 * np.finfo("f4").eps * np.max(Kff)


def test_covariances_between_sets() -> None:
    kernel, v, u = matern(), some(4), some(5)
    whole = SphericalHarmonics(4, range(4))
    between = Kuu(whole, kernel).numpy()[rows_of(v, whole)][:, rows_of(u, whole)]
    assert np.count_nonzero(between) > 0
    np.testing.assert_allclose(Kvu(v, u, kernel), between, rtol=1e-12)
    units = ActivationFeatures.random(3, 4, "softplus", 4, seed=1)
    expected = Kvu(units, whole, kernel).numpy()[:, rows_of(u, whole)]
    assert_close(Kvu(units, u, kernel), expected, rtol=1e-12)
    assert_close(Kvu(u, units, kernel), expected.T, rtol=1e-12)
    points = InducingPoints(X[:4])
    assert_close(Kvu(points, u, kernel), tf.transpose(Kuf(u, kernel, X[:4])), rtol=1e-12)
    message = r"iv_v, iv_u: column_order must be the same for both, found \(0, 1, 2\) and \(2, 0, 1"
    with pytest.raises(ValueError, match=message):
        Kvu(v, some(5, order=(2, 0, 1)), kernel)
