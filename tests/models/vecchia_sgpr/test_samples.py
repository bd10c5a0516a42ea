"""The samples of rows that train a ``VecchiaSGPR``: rare rows, weights, merged rows."""

import numpy as np
import pytest
from gpflow.kernels import Matern32

import interdomain as idm
from interdomain.models.vecchia_sgpr.samples import Samples, chances_of_rows
from tests.models.vecchia_sgpr.test_fit import NUM_ROWS, alone, rows

ZEROS = 8_000
"""Rows of a square, nearly all of zero."""


@pytest.mark.parametrize("seed", [0, 2])
def test_rare_rows_are_in_the_samples(seed: int) -> None:
    """Targets are zero but for six rows near one place, and are 3 to 4 there. A prediction there
    is of this size, and the evidence exceeds the evidence of parameters that describe the rows."""
    rng = np.random.default_rng(seed)
    X, Y = rng.uniform(0, 1, (ZEROS, 2)), np.zeros([ZEROS, 1])
    near = np.argsort(np.linalg.norm(X - 0.5, axis=1))[:6]
    Y[near, 0] = rng.uniform(3, 4, 6)
    kernel = Matern32(lengthscales=0.1)
    model = alone((X, Y), local_kernel=kernel, num_neighbours=12)
    result = idm.fit(model, steps=1, progress=False)
    assert 2.5 < model.predict_f(np.full([1, 2], 0.5))[0][0, 0] < 4.5
    kernel.lengthscales.assign(0.03)
    kernel.variance.assign(1.0)
    model.likelihood.variance.assign(1e-4)
    model.search()
    assert result.elbo > float(model.elbo()) + 1_000


def test_weighted_samples_are_unbiased() -> None:
    """The mean of many weighted sums is the mean of all rows; every sample has rare rows."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(0, 1, (2_000, 2)), 0.01 * rng.normal(size=(2_000, 1))
    Y[:3] = [[5.0], [6.0], [7.0]]
    model = alone((X, Y), num_neighbours=2)
    ordered = model.ordered
    chances = chances_of_rows(model, ordered.merged.Y)
    assert chances is not None
    np.testing.assert_allclose(np.sum(chances), 1)
    sums = []
    for seed in range(40):
        drawn_rows, weights = ordered.draw(100, seed, chances)
        drawn = ordered.merged.Y[drawn_rows, 0]
        assert len(drawn) <= 101 and np.sum(drawn > 4) == 3
        sums.append([weights.sum(), weights @ drawn, weights @ drawn**2])
    expected = [1, np.mean(Y), np.mean(Y**2)]
    deviations = np.std(sums, axis=0) / np.sqrt(len(sums)) + 1e-12
    assert np.all(np.abs(np.mean(sums, axis=0) - expected) < 4 * deviations)
    model = alone(rows(smooth=1.0, rough=1.0))
    assert chances_of_rows(model, model.arrays[1]) is None


def test_rare_rows_set_the_noise() -> None:
    """One in 70 rows is repeated with another target: a sample without any would let the noise
    vanish."""
    X, Y = rows(smooth=0.0, rough=1.0, noise=0.0)
    X = np.concatenate([X, X[:10]])
    Y = np.concatenate([Y, Y[:10] + 0.5])
    result = idm.fit(alone((X, Y)), progress=False)
    assert result.elbo / NUM_ROWS > -0.5


def test_samples_after_other_rows_are_merged() -> None:
    """Chances of rare rows are those of the merged rows as they are now."""
    X, Y = rows(smooth=1.0, rough=0.1)
    Y[::80] += 1_000.0
    model = alone((X, Y), num_neighbours=5)
    samples = Samples(model, model.mean_function)
    sizes = set()
    for noise_variance in (1.0, 1e-6):
        model.ordered.search(model.local, noise_variance, model._variations_beside)
        samples.draw(30, 0)
        sizes.add(len(model.ordered.merged.X))
        assert samples.chances is None or len(samples.chances) in sizes
    assert samples.chances is not None and len(sizes) == 2
