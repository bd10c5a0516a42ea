"""What the margin of an interval costs: figures of benchmarks/README.md."""

from __future__ import annotations

import gpflow
import numpy as np

from benchmarks.vff_additive import models


def test_what_a_margin_costs() -> None:
    """The figures of IntervalFourierFeatures.from_data, too: a margin in lengthscales."""
    lengthscale = 0.4
    X = np.array([[0.0], [1.0]])
    kernel = gpflow.kernels.Sum([gpflow.kernels.Matern32(1.0, lengthscale)])
    for margin, lost in ((1.0, 0.15), (2.0, 0.015), (2.5, 0.004)):
        features = models.fourier_features(X, 100, margin * lengthscale)
        columns = gpflow.covariances.Kuf(features, kernel, X)
        prior = gpflow.covariances.Kuu(features, kernel)
        explained = np.sum(columns * np.linalg.solve(prior, columns), axis=0)
        np.testing.assert_allclose(1 - explained, lost, rtol=0.1)
