"""Sums over whitened rows against loops over the rows."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.inducing_variables import BoxFourierFeatures
from interdomain.kernels import Periodized
from interdomain.models import VecchiaSGPR
from interdomain.models.vecchia_sgpr.whitening import NeighbourRows
from interdomain.sums.whitened_waves import WhitenedWaves
from tests.parts import finite_rank

NUM_ROWS = 120


def waves(num_columns: int, num_features: int) -> tuple[Any, Any]:
    """Waves of a box; without columns, harmonics of the globe, which are combinations of waves."""
    if not num_columns:
        globe = idm.kernels.GlobeMatern32(lengthscale=0.2)
        return globe, idm.inducing_variables.SphericalHarmonics.for_kernel(globe, 2, 16)
    base = gpflow.kernels.Matern32(lengthscales=np.full(num_columns, 2.0))
    kernel = Periodized(base, np.full(num_columns, -9.0), np.full(num_columns, 8.0))
    return kernel, BoxFourierFeatures.for_kernel(kernel, num_features)


@pytest.mark.parametrize(("num_columns", "num_features"), [(1, 45), (2, 250), (3, 1_100), (0, 289)])
def test_sums_of_waves_are_those_of_a_loop(num_columns: int, num_features: int) -> None:
    """The batch of the first rows has a large box, where waves are as quick; another a small one,
    where polynomials are fewer. The graph with gradients has the same sums."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 0.3, size=(NUM_ROWS, num_columns or 2))
    X[-1] = 7.0 if num_columns else 80.0  # a cell of its own is wide
    Y = rng.normal(size=(NUM_ROWS, 2))
    model = VecchiaSGPR(
        (X, Y),
        *finite_rank(*waves(num_columns, num_features)),
        local_kernel=gpflow.kernels.Matern32(lengthscales=0.5),
        local_inputs="euclidean" if num_columns else "degrees",
        num_neighbours=6,
        noise_variance=0.3,
        merge="off",
        batch_size=50,
        progress=False,
    )
    features, sums = model._features, model._features.sums
    assert isinstance(sums, WhitenedWaves)
    numbers, size = [], features.num_inducing
    total = np.zeros([size + 3, size + 3])
    for rows, targets, places, noise_weights in model._rows().batches():
        basis, coefficients = sums.basis(rows)
        numbers.append(basis.shape[1])
        Kuf = np.asarray(gpflow.covariances.Kuf(model.inducing_variable, model.kernel, rows))
        if coefficients is not None:
            np.testing.assert_allclose(basis @ coefficients, Kuf.T, atol=1e-13 * np.max(Kuf))
        weights, *_ = features.weights(*map(tf.constant, (rows, places, noise_weights)))
        joined = np.concatenate([Kuf.T, targets, np.ones_like(targets[:, :1])], axis=1)
        for row, near in zip(weights.numpy(), places, strict=True):
            some = near >= 0
            whitened = row[some] @ joined[near[some]]
            total += np.outer(whitened, whitened)
        parts = rows, targets, places, noise_weights
        batch = sums.total(sums.batch(*parts))
        for name, array in sums.tensors(*map(tf.constant, parts)).items():
            np.testing.assert_allclose(batch[name], array, rtol=1e-9, atol=1e-11)
    assert min(numbers) < 0.6 * size and max(numbers) == size
    found = model.statistics.sums
    np.testing.assert_allclose(found["gram"], total[:size, :size], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found["products"], total[:size, size:], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found["targets"], total[size:, size:], rtol=1e-10)


def test_batches_have_each_row_once_and_its_neighbours() -> None:
    """Rows that are equal in all columns are split, too."""
    rng = np.random.default_rng(1)
    for X in (rng.normal(size=(NUM_ROWS, 3)), np.zeros([NUM_ROWS, 3])):
        X, Y = X + np.arange(NUM_ROWS)[:, None] * 1e-9, np.arange(NUM_ROWS)[:, None]
        search = idm.models.VecchiaSGPR(
            (X, Y), local_kernel=gpflow.kernels.Matern32(), num_neighbours=4, progress=False
        ).local.neighbours(X)
        for which in (None, np.array([3, 110, 45, 46, 7])):
            rows = NeighbourRows(X, Y, np.ones(len(X)), search, 4, which=which, batch_size=16)
            seen = []
            for places_of, targets, places, _ in rows.batches():
                assert len(places) <= 16 and len(np.unique(targets)) == len(targets)
                own = targets[places[:, -1], 0]
                np.testing.assert_array_equal(places_of, X[targets[:, 0]])
                near = np.where(places[:, :-1] < 0, -1, targets[places[:, :-1], 0])
                np.testing.assert_array_equal(near, search.before_all(4)[own])
                seen += own.tolist()
            expected = np.arange(NUM_ROWS) if which is None else np.sort(which)
            np.testing.assert_array_equal(np.sort(seen), expected)
