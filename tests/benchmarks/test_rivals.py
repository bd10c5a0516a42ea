"""The equispaced Fourier GP of `benchmarks.pareto` against dense waves."""

import numpy as np
import pytest

from benchmarks.pareto import rivals


def test_equispaced_waves_equal_dense_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "TOLERANCE", 1e-10)
    monkeypatch.setattr(rivals, "MOST_STEPS", 5_000)
    rng = np.random.default_rng(0)
    angles, new = (2 * np.pi * rng.uniform(size=(n, 2)) / rivals.PERIOD for n in (60, 9))
    Y, lengthscale, noise = rng.normal(size=60), 0.2, 0.05
    waves = rivals._Waves(angles, Y, 12)
    axis = np.arange(-12, 13)
    numbers = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    variances = rivals._spectral_density(axis, lengthscale).ravel()
    rows, others = (np.exp(1j * part @ numbers.T) for part in (angles, new))
    covariance = ((rows * variances) @ rows.conj().T).real + noise * np.eye(60)
    expected = ((others * variances) @ rows.conj().T).real @ np.linalg.solve(covariance, Y)
    found = waves.predict(new, lengthscale, noise)
    np.testing.assert_allclose(found, expected, atol=1e-6)
