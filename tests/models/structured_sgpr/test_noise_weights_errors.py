"""Noise weights that are wrong, or that a part of the library would leave out."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from tests.models.structured_sgpr.test_noise_weights import N, W, X, Y, chain, harmonics, model_of


def test_wrong_weights() -> None:
    def with_one(value: float) -> Any:
        weights = W.copy()
        weights[[17, 60]] = value
        return weights

    shape = r"one number a row, of shape \[90\] or \[90, 1\], found shape"
    wrong: list[tuple[Any, str]] = [
        (with_one(0.0), r"positive and finite, found 0 for row 17 \(counted from zero\), and 1"),
        (with_one(-2.0), "positive and finite, found -2 for row 17"),
        (with_one(np.nan), "positive and finite, found nan for row 17"),
        (with_one(np.inf), "positive and finite, found inf for row 17"),
        (W[:-1], rf"{shape} \(89,\); pass the weight of each row"),
        (np.ones([N, 2]), rf"{shape} \(90, 2\)"),
        (2.0, rf"{shape} \(\)"),
        (["many"] * N, "real numbers: one number a row"),
        (W + 1j, "real numbers, found entries of type complex128"),
    ]
    for weights, message in wrong:
        with pytest.raises(ValueError, match=f"noise_weights must be {message}"):
            model_of(harmonics, weights=weights)
        with pytest.raises(ValueError, match=f"noise_weights must be {message}"):
            _ = model_of(harmonics).accumulate((X, Y), noise_weights=weights)
    dataset = tf.data.Dataset.from_tensor_slices((X, Y, with_one(-1.0))).batch(7)
    with pytest.raises(ValueError, match="noise_weights must be .* found -1 for row 17"):
        model_of(harmonics, dataset, None).elbo()
    for data in (dataset, model_of(harmonics).statistics, (X, Y, W)):
        with pytest.raises(ValueError, match="noise_weights must come with arrays .*leave it out"):
            model_of(harmonics, data)

    def some_without() -> Any:
        yield X, Y, W
        yield X, Y

    with pytest.raises(ValueError, match=r"the first had 2 and 2, and weights"):
        model_of(harmonics, some_without, None).elbo()
    kernel, features = harmonics()  # of a model that takes no weights
    for data, message in (((X, Y, W), "found a tuple; pass a pair"), (some_without, "has 3 parts")):
        with pytest.raises(ValueError, match=f"data: .*{message}"):
            idm.models.DualSVGP(data, kernel, gpflow.likelihoods.Poisson(), features)


def test_a_structure_that_leaves_weights_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(chain)
    sums = type(model._features.sums)
    heeding = sums.in_graph
    monkeypatch.setattr(sums, "in_graph", lambda self, X, Y, *more: heeding(self, X, Y))
    for evaluate in (model.elbo, lambda: model.statistics):
        with pytest.raises(ValueError, match="noise_weights: found weights .* ChainSums leaves"):
            evaluate()
