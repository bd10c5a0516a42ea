"""Errors of predictions."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._lib.prediction import gaussian_errors, two_class_scores


def test_gaussian_errors() -> None:
    Y, mean = np.array([[1.0], [2.0]]), np.array([[1.0], [0.0]])
    errors = gaussian_errors(Y, mean, np.full((2, 1), 4.0))
    assert errors["rmse"] == pytest.approx(np.sqrt(2.0))
    assert errors["nll"] == pytest.approx(0.5 * np.log(8.0 * np.pi) + 0.25)


def test_area_under_the_curve_against_all_pairs() -> None:
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(0.05, 0.95, size=200), 2)  # with ties
    Y = (rng.random(200) < p) * 1.0
    pairs = [(one > zero) + 0.5 * (one == zero) for one in p[Y == 1] for zero in p[Y == 0]]
    found = two_class_scores(Y[:, None], p[:, None])
    assert found["auc"] == pytest.approx(np.mean(pairs), rel=1e-12)
    expected = np.mean([np.log(b if y else 1 - b) for y, b in zip(Y, p, strict=True)])
    assert found["log_density"] == pytest.approx(expected, rel=1e-12)
