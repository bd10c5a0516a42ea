"""Layers of GPflux over inducing variables of this library.

GPflux is no dependency of the tests: where it is not installed, its way of calling GPflow is
imitated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.conditionals import conditional
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Matern12, Matern32, SharedIndependent
from gpflow.kullback_leiblers import prior_kl

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


@pytest.mark.parametrize("name", LAYERS)
def test_imitated_layers(name: str) -> None:
    """Two layers traced with unknown columns. What a layer of GPflux hands to the next is a
    distribution, not a tensor, until TensorFlow makes it one: here its mean."""
    layers = [LAYERS[name]() for _ in range(2)]
    sizes = [int(inducing_variable.num_inducing) for _, inducing_variable in layers]
    q = [
        (gpflow.Parameter(rng.normal(size=(size, 2))), gpflow.Parameter([0.3 * np.eye(size)] * 2))
        for size in sizes
    ]

    def marginals(inputs: Any, layer: int) -> Any:
        kernel, inducing_variable = layers[layer]
        q_mu, q_sqrt = q[layer]
        return conditional(inputs, inducing_variable, kernel, q_mu, q_sqrt=q_sqrt, white=True)

    def hidden(inputs: Any) -> Any:
        layer = tfp.layers.DistributionLambda(
            lambda x: tfp.distributions.MultivariateNormalDiag(*marginals(x, 0)),
            convert_to_tensor_fn=lambda distribution: distribution.mean(),
            dtype=gpflow.default_float(),
        )
        return layer(inputs)

    def network(inputs: Any) -> Any:
        kls = [
            prior_kl(inducing_variable, kernel, *own, whiten=True)
            for (kernel, inducing_variable), own in zip(layers, q, strict=True)
        ]
        return marginals(hidden(inputs), 1), tf.add_n(kls)

    (mean, variance), kl = marginals(marginals(X, 0)[0], 1), network(X)[1]
    signature = [tf.TensorSpec([None, None], gpflow.default_float())]
    found, found_kl = tf.function(network, input_signature=signature, autograph=False)(X)
    np.testing.assert_allclose(found[0], mean, rtol=1e-8)
    np.testing.assert_allclose(found[1], variance, rtol=1e-8)
    np.testing.assert_allclose(found_kl, kl, rtol=1e-10)


@pytest.fixture
def keras() -> Iterator[Any]:
    """That of GPflux's models, with the type of GPflow's numbers."""
    module = pytest.importorskip("tf_keras", reason="GPflux's models are those of tf_keras")
    before = module.backend.floatx()
    module.backend.set_floatx("float64")
    yield module
    module.backend.set_floatx(before)


def deep_gp(make: Callable[[], Parts]) -> Any:
    gpflux = pytest.importorskip("gpflux", reason="GPflux, a library of its own, is not installed")
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


@pytest.mark.parametrize("name", LAYERS)
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
