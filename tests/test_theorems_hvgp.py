"""Theorems 4.1 and 4.2 of Sun et al. 2021, through stock GPflow models."""

from __future__ import annotations

from collections.abc import Iterator

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import HarmonicInducingPoints
from interdomain.kernels import HarmonicKernel
from interdomain.transforms import CyclicTransform, Negation, Rotation

GROUPS: dict[str, list[CyclicTransform]] = {
    "2": [Rotation(2)],
    "3": [Rotation(3)],
    "4": [Rotation(4)],
    "2x3": [Negation(2), Rotation(3)],
}
# Away from the fixed points, and from each other's images.
Z = np.array([[0.9, 0.3, 0.5], [-1.9, 0.8, -0.7], [0.2, 2.8, 1.1]])
NOISE = 0.1


@pytest.fixture(autouse=True)
def no_jitter() -> Iterator[None]:
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-14)):
        yield


def make_data(num: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(num, 3))
    return X, np.sin(2 * X[:, :1]) + X[:, 1:2] * X[:, 2:] + 0.3 * rng.normal(size=(num, 1))


def orbit_of(kernel: HarmonicKernel) -> InducingPoints:
    return InducingPoints(tf.reshape(kernel.transform.orbit(Z), [-1, 3]).numpy())


@pytest.mark.parametrize("group", GROUPS)
def test_joint_q_is_that_of_the_orbits(group: str) -> None:
    """Theorem 4.1, completed for the pairs of section 3.4: with the best q(u) of each."""
    kernel = HarmonicKernel(gpflow.kernels.Matern32(1.3, 1.1), GROUPS[group])
    points = HarmonicInducingPoints.for_kernel(kernel, Z, complete=True)
    orbit = orbit_of(kernel)
    assert points.num_inducing == orbit.num_inducing == 3 * kernel.transform.order
    data, X = make_data(40), np.random.default_rng(4).normal(size=(6, 3))
    harmonic = gpflow.models.SGPR(data, kernel, points, noise_variance=NOISE)
    stock = gpflow.models.SGPR(data, kernel.base_kernel, orbit, noise_variance=NOISE)
    np.testing.assert_allclose(harmonic.elbo(), stock.elbo(), rtol=1e-8)
    for actual, desired in zip(
        harmonic.predict_f(X, full_cov=True), stock.predict_f(X, full_cov=True), strict=True
    ):
        np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-8)
    # There is something to compare: the points explain a part of the prior, and predict.
    trace = float(tf.reduce_sum(kernel(data[0], full_cov=False)))
    assert 0.2 < explained(kernel, points, data[0]) / trace < 0.9
    assert np.abs(stock.predict_f(X)[0]).max() > 0.3


def explained(kernel: gpflow.kernels.Kernel, points: object, X: np.ndarray) -> float:
    features = Kuf(points, kernel, X).numpy()
    return float(np.sum(features * np.linalg.solve(Kuu(points, kernel).numpy(), features)))


@pytest.mark.parametrize("group", ["3", "4"])
def test_without_the_images_of_paired_parts_less_is_explained(group: str) -> None:
    kernel = HarmonicKernel(gpflow.kernels.Matern32(1.3, 1.1), GROUPS[group])
    X, _ = make_data(40)
    single = explained(kernel, HarmonicInducingPoints.for_kernel(kernel, Z), X)
    full = HarmonicInducingPoints.for_kernel(kernel, Z, complete=True)
    complete = explained(kernel, full, X)
    orbit = explained(kernel.base_kernel, orbit_of(kernel), X)
    assert single < 0.95 * complete
    np.testing.assert_allclose(complete, orbit, rtol=1e-10)


def test_for_pairs_of_two_the_images_change_nothing() -> None:
    kernel = HarmonicKernel(gpflow.kernels.Matern32(1.3, 1.1), [Negation(0), Negation(1)])
    single, complete = (
        HarmonicInducingPoints.for_kernel(kernel, Z, complete=complete)
        for complete in (False, True)
    )
    assert single.multiplicities == complete.multiplicities == (1, 1, 1, 1)
    X, _ = make_data(40)
    orbit = explained(kernel.base_kernel, orbit_of(kernel), X)
    np.testing.assert_allclose(explained(kernel, single, X), orbit, rtol=1e-10)


def largest_correlation(X: np.ndarray) -> float:
    """Of two variables in different blocks, under the best joint q(u)."""
    kernel = HarmonicKernel(gpflow.kernels.SquaredExponential(1.0, 0.8), Negation(0))
    points = HarmonicInducingPoints([[[0.4], [1.1]], [[0.6], [1.4]]])
    model = gpflow.models.SGPR((X, np.sin(X)), kernel, points, noise_variance=0.5)
    _, covariance = model.compute_qu()
    deviations = np.sqrt(np.diag(covariance))
    return float(np.abs(covariance / np.outer(deviations, deviations))[:2, 2:].max())


def test_blocks_become_independent_on_symmetric_data() -> None:
    """Theorem 4.2: x and G x are equally likely, and the correlation falls with N as a mean over
    the data does, N^(-1/2); elsewhere a mean-field q(u) stays wrong."""
    rng = np.random.default_rng(0)
    symmetric = [
        np.mean([largest_correlation(rng.normal(size=(num, 1))) for _ in range(3)])
        for num in (100, 1000, 10_000)
    ]
    assert symmetric[0] > 2 * symmetric[1] > 4 * symmetric[2]
    assert symmetric[2] < 0.05
    for num in (100, 1000, 10_000):
        assert largest_correlation(rng.uniform(0.2, 2.0, size=(num, 1))) > 0.8
