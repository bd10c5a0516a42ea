"""Constructors name the argument that cannot be right, the value found, and what to pass.

All wrong values of a kind are refused by the check of that kind (test_checks.py); what belongs to
one family is tested with it. Here is one wrong value for each kind of argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32
from gpflow.likelihoods import Gaussian

from interdomain import inducing_variables, kernels, models, sphere, transforms

X = np.random.default_rng(0).normal(size=(20, 2))
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a negative variance": (lambda: kernels.ArcCosine(variance=-1.0), "variance must be.*found -1"),
    "no number": (lambda: kernels.SphericalMatern32(lengthscale="1"), "lengthscale must be"),
    "a fraction": (lambda: kernels.ArcCosine(depth=1.5), "depth must be an integer.*found 1.5"),
    "an unknown choice": (
        lambda: kernels.SphericalMatern32(inputs="radians"),
        "inputs must be 'euclidean' or .*found 'radians'",
    ),
    "no kernel": (
        lambda: kernels.HarmonicKernel("rbf", transforms.Negation(0)),
        "base_kernel must be a GPflow kernel, found str",
    ),
    "no transformations": (
        lambda: kernels.HarmonicKernel(Matern32(), [3]),
        r"transforms\[0\] must be a CyclicTransform, found 3; pass",
    ),
    "a box without width": (
        lambda: kernels.Periodized(Matern32(), 1.0, 1.0),
        "upper must be above lower.*; pass a box",
    ),
    "a box with NaN": (
        lambda: kernels.Periodized(Matern32(), 0.0, np.nan),
        "upper must be finite, found nan; pass",
    ),
    "the kernel of another family": (
        lambda: inducing_variables.SphericalHarmonics.for_kernel(Matern32(), 2, 3),
        "kernel must be .*found Matern32",
    ),
    "no features": (
        lambda: inducing_variables.ActivationFeatures.random(2, 0, "relu", 3),
        "num_inducing must be an integer of 1 or more, found 0",
    ),
    "points with infinity": (
        lambda: inducing_variables.HarmonicInducingPoints(X + np.inf, 2),
        "Z must be finite",
    ),
    "a vector of points": (
        lambda: inducing_variables.OrbitInducingPoints(X[:, 0]),
        r"Z must be .*found shape \(20,\)",
    ),
    "an interval of text": (
        lambda: inducing_variables.IntervalFourierFeatures("a", 1.0, 3),
        "lower must be a number",
    ),
    "no likelihood": (
        lambda: models.AdditiveSVGP(Matern32(), 0.1, InducingPoints(X)),
        "likelihood must be a GPflow likelihood, found float",
    ),
    "q of another shape": (
        lambda: models.OrthogonalSVGP(
            *(Matern32(), Gaussian(), InducingPoints(X[:3]), InducingPoints(X[5:7])),
            q_mu=np.zeros([2, 1]),
        ),
        r"q_mu must have shape .*found \[?\(?2, 1",
    ),
    "noise below zero": (
        lambda: models.StructuredSGPR(
            (X, X[:, :1]), Matern32(), InducingPoints(X[:3]), noise_variance=-1.0
        ),
        "noise_variance must be above 1e-06, found -1.0",
    ),
    "an order of one": (lambda: transforms.Rotation(1), "order must be an integer from 2 to"),
    "columns twice": (
        lambda: transforms.Rotation(4, dims=[1, 1]),
        "dims must be 2 different columns",
    ),
    "a class for a function": (
        lambda: sphere.CustomActivation(float),
        "function must be .*found a class",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        make()
