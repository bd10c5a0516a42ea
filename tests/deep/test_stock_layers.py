"""GPflux's own layers over inducing variables of this library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import gpflux
import numpy as np
import pytest
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Matern12, Matern32, SharedIndependent

from interdomain.inducing_variables import (
    ActivationFeatures,
    HarmonicInducingPoints,
    IntervalFourierFeatures,
    SharedIndependentInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import ArcCosine, HarmonicKernel, SphericalMatern32
from interdomain.transforms import Rotation
from tests.tiers import in_tiers

Parts = tuple[Kernel, InducingVariables]

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(40, 1))


def harmonics() -> Parts:
    return SphericalMatern32(), SphericalHarmonics(3, [0, 1, 2])


def wrapped_harmonics() -> Parts:
    """As GPflux's helpers make layers, but for the class of the wrapper."""
    kernel, inducing_variable = harmonics()
    wrapper = SharedIndependentInducingVariables(inducing_variable)
    return SharedIndependent(kernel, output_dim=2), wrapper


def activations() -> Parts:
    return ArcCosine(1), ActivationFeatures.random(2, 5, "relu", 4)


def harmonic_points() -> Parts:
    kernel = HarmonicKernel(Matern32(), Rotation(3))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, X[:4])


def interval_sum() -> Parts:
    kernel = Matern12(active_dims=[0]) + Matern32(active_dims=[1])
    return kernel, SumInducingVariables([IntervalFourierFeatures(-5, 5, 2)] * 2)


LAYERS: dict[str, Callable[[], Parts]] = {
    "harmonics": harmonics,
    "wrapped harmonics": wrapped_harmonics,
    "activations": activations,
    "harmonic points": harmonic_points,
    "sum": interval_sum,
}


def deep_gp(make: Callable[[], Parts]) -> Any:
    layers = []
    for num_latent_gps, mean_function in ((2, None), (1, gpflow.mean_functions.Zero())):
        kernel, inducing_variable = make()
        if isinstance(kernel, SharedIndependent):
            kernel = SharedIndependent(kernel.kernel, output_dim=num_latent_gps)
        layer = gpflux.layers.GPLayer(
            kernel,
            inducing_variable,
            num_data=len(X),
            num_latent_gps=num_latent_gps,
            mean_function=mean_function,
            verbose=False,
        )
        layers.append(layer)
    return gpflux.models.DeepGP(layers, gpflow.likelihoods.Gaussian(0.1))


@pytest.mark.parametrize("name", in_tiers(("wrapped harmonics", "sum"), quick=()))
def test_gpflux(name: str, keras: Any, tmp_path: Path) -> None:
    """GPflux's default model is traced with unknown columns; it trains, and its weights are saved
    and loaded."""
    deep, other = deep_gp(LAYERS[name]), deep_gp(LAYERS[name])
    keras.utils.set_random_seed(0)
    model = deep.as_training_model()
    model.compile(keras.optimizers.Adam(0.05))
    losses = model.fit({"inputs": X, "targets": Y}, epochs=20, batch_size=20, verbose=0)
    assert losses.history["loss"][-1] < losses.history["loss"][0]
    model.save_weights(str(tmp_path / "weights"))
    loaded = other.as_training_model()
    loaded.load_weights(str(tmp_path / "weights")).expect_partial()
    for old, new in zip(deep.f_layers, other.f_layers, strict=True):
        for expected, actual in zip(old.predict(X), new.predict(X), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-10)
    mean, _ = other.predict_f(X)
    assert mean.shape == Y.shape
