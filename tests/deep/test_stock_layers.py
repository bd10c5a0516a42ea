"""GPflux's own layers over inducing variables of this library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import gpflux
import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Matern12, Matern32, SharedIndependent

from interdomain.inducing_variables import (
    IntervalFourierFeatures,
    SharedIndependentInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import SphericalMatern32

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(40, 1))


def layer(
    kernel: Kernel, inducing_variable: InducingVariables, outputs: int, mean: Any = None
) -> gpflux.layers.GPLayer:
    return gpflux.layers.GPLayer(
        kernel,
        inducing_variable,
        num_data=len(X),
        num_latent_gps=outputs,
        mean_function=mean,
        verbose=False,
    )


def deep_gp() -> gpflux.models.DeepGP:
    """A sum, and then harmonics as GPflux's helpers make layers, but for the class of the
    wrapper."""
    total = Matern12(active_dims=[0]) + Matern32(active_dims=[1])
    blocks = SumInducingVariables([IntervalFourierFeatures(-5, 5, 2)] * 2)
    wrapper = SharedIndependentInducingVariables(SphericalHarmonics(3, [0, 1, 2]))
    kernel = SharedIndependent(SphericalMatern32(), output_dim=1)
    layers = [
        layer(total, blocks, 2),
        layer(kernel, wrapper, 1, gpflow.mean_functions.Zero()),
    ]
    return gpflux.models.DeepGP(layers, gpflow.likelihoods.Gaussian(0.1))


def test_gpflux(keras: Any, tmp_path: Path) -> None:
    """GPflux's default model is made with an unknown number of rows; it trains, and its weights
    are saved and loaded."""
    deep, other = deep_gp(), deep_gp()
    keras.utils.set_random_seed(0)
    model = deep.as_training_model()
    model.compile(keras.optimizers.Adam(0.05), run_eagerly=True)
    losses = model.fit({"inputs": X, "targets": Y}, epochs=4, batch_size=40, verbose=0)
    assert losses.history["loss"][-1] < losses.history["loss"][0]
    model.save_weights(str(tmp_path / "weights"))
    loaded = other.as_training_model()
    loaded.load_weights(str(tmp_path / "weights")).expect_partial()
    for old, new in zip(deep.f_layers, other.f_layers, strict=True):
        for expected, actual in zip(old.predict(X), new.predict(X), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-10)
    mean, _ = other.predict_f(X)
    assert mean.shape == Y.shape
