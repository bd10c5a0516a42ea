"""Constructors name the argument that cannot be right, the value found, and what to pass.

All wrong values of a kind are refused by the check of that kind (test_checks.py); what belongs to
one family is tested with it. Here is what constructors of several families take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32

from interdomain import inducing_variables, kernels, models, sphere

X = np.random.default_rng(0).normal(size=(20, 2))
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: kernels.ArcCosine(depth=1.5), "depth must be an integer.*found 1.5"),
    (
        lambda: kernels.Periodized(Matern32(), 0.0, np.nan),
        "upper must be finite, found nan; pass",
    ),
    (
        lambda: inducing_variables.ActivationFeatures.random(2, 0, "relu", 3),
        "num_inducing must be an integer of 1 or more, found 0",
    ),
    (lambda: inducing_variables.HarmonicInducingPoints(X + np.inf, 2), "Z must be finite"),
    (
        lambda: inducing_variables.OrbitInducingPoints(X[:, 0]),
        r"Z must be .*found shape \(20,\)",
    ),
    (
        lambda: inducing_variables.IntervalFourierFeatures("a", 1.0, 3),
        "lower must be a number",
    ),
    (
        lambda: models.AdditiveSVGP(Matern32(), 0.1, InducingPoints(X)),
        "likelihood must be a GPflow likelihood, found float",
    ),
    (
        lambda: models.StructuredSGPR(
            (X, X[:, :1]), Matern32(), InducingPoints(X[:3]), noise_variance=-1.0
        ),
        "noise_variance must be above 1e-06, found -1.0",
    ),
    (lambda: sphere.CustomActivation(float), "function must be .*found a class"),
]


def test_wrong_arguments_are_named() -> None:
    for make, message in WRONG:
        with pytest.raises(ValueError, match=message):
            make()
