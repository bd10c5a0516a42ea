"""Layers that do not fit are refused when they are put together, and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern12, Matern32, SquaredExponential

from interdomain import deep, training
from interdomain.inducing_variables import (
    AdditiveFeatures,
    IntervalFourierFeatures,
    PeriodicFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import Additive, Periodized, SphericalMatern32

from .cases import NUM_DATA, harmonics, make_data, points

X, _ = make_data()


def periodic() -> deep.Layer:
    kernel = Periodized(Matern32(), [-3.0, -3.0], [3.0, 3.0])
    features = PeriodicFourierFeatures.for_kernel(kernel, 9)
    return deep.StructuredLayer(kernel, features, NUM_DATA, name="waves")


def interval() -> deep.Layer:
    kernel = Matern12(active_dims=[0]) + Matern12(active_dims=[1])
    features = SumInducingVariables([IntervalFourierFeatures(-3, 3, 2)] * 2)
    return deep.AdditiveLayer(kernel, features, NUM_DATA, name="interval")


def additive() -> deep.Layer:
    kernel = Additive.from_data(X)
    features = AdditiveFeatures(kernel, dict.fromkeys(kernel.effects, 1))
    return deep.StructuredLayer(kernel, features, NUM_DATA, name="effects")


def globe() -> deep.Layer:
    kernel = SphericalMatern32(inputs="unit_vectors")
    return deep.StructuredLayer(kernel, SphericalHarmonics(2, [0, 1]), NUM_DATA, name="globe")


def hidden() -> deep.Layer:
    return harmonics(2, gpflow.mean_functions.Identity())


def test_hidden_outputs_that_cannot_be_seen() -> None:
    """As the first layer they see the data; as the second they would see anything."""
    for make, message in (
        (periodic, "the box .* of PeriodicFourierFeatures, which they leave"),
        (interval, "the interval .* of IntervalFourierFeatures, which they leave"),
        (additive, "the ranges of the columns of AdditiveFeatures, which they leave"),
        (globe, "unit|length"),
    ):
        layer = make()
        deep.DeepGP([layer], gpflow.likelihoods.Gaussian())
        with pytest.raises(ValueError, match=rf"f_layers\[1\] \({layer.name}\): .*({message})"):
            deep.DeepGP([hidden(), layer], gpflow.likelihoods.Gaussian())


def test_widths() -> None:
    narrow = harmonics(1, name="narrow")
    with pytest.raises(
        ValueError, match=r"f_layers\[1\] \(last\) must take the 1 outputs of .*narrow"
    ):
        deep.DeepGP([narrow, points(1, name="last")], gpflow.likelihoods.Gaussian())


PARTS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: deep.StructuredLayer(
            SquaredExponential(lengthscales=np.ones(3)), InducingPoints(X[:4]), 10, name="first"
        ),
        "^first: .*2 columns",
    ),
    (
        lambda: harmonics(3, gpflow.mean_functions.Identity(), name="first"),
        "^first: mean_function must return 3 columns, .* found 2",
    ),
    (lambda: harmonics(0), "num_latent_gps must be"),
    (
        lambda: deep.StructuredLayer(Matern32(), SphericalHarmonics(3, [0, 1]), 10, name="a"),
        "^a: .*SphericalHarmonics.*Matern32",
    ),
    (lambda: deep.StructuredLayer(Matern32(), InducingPoints(X[:4]), 0), "num_data must be"),
    (lambda: harmonics(1, full_cov=True, full_output_cov=True), "found True for both"),
]


def test_parts_of_a_layer() -> None:
    for make, message in PARTS:
        with pytest.raises(ValueError, match=message):
            make()


def test_models() -> None:
    likelihood = gpflow.likelihoods.Gaussian()
    with pytest.raises(ValueError, match="f_layers must have at least one layer"):
        deep.DeepGP([], likelihood)
    with pytest.raises(ValueError, match=r"f_layers\[0\] must be a layer of interdomain.deep"):
        deep.DeepGP([gpflow.kernels.RBF()], likelihood)  # type: ignore[list-item]
    model = deep.DeepGP([hidden(), harmonics(1)], likelihood)
    with pytest.raises(NotImplementedError, match="predict_f_samples"):
        model.predict_f(X, full_cov=True)
    with pytest.raises(ValueError, match=r"f_layers\[0\] .*2 columns.* found 3"):
        training.fit(model, (np.ones([40, 3]), np.ones([40, 1])), batch_size=10, progress=False)
    with pytest.raises(ValueError, match="num_data"):
        training.fit(model, (X[:20], np.ones([20, 1])), batch_size=10, progress=False)
