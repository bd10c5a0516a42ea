"""What holds of every layer: in GPflux's Keras models, and in `deep.DeepGP`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpflow
import gpflux
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import LinearCoregionalization

from interdomain import deep, serving, training
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import SphericalMatern32
from tests.tiers import in_tiers

from .cases import LAYERS, NUM_DATA, convolutional, make_data, randomise, two_layers

KINDS = (*LAYERS, "convolutional")
CLASSES = ("harmonics", "blocks", "orthogonal", "convolutional")
"""One of each class of layers: tracing takes seconds."""


def model_of(name: str, **options: Any) -> deep.DeepGP:
    if name == "convolutional":
        return two_layers(LAYERS["points"], convolutional, **options)
    return two_layers(LAYERS[name], **options)


@pytest.mark.parametrize("name", in_tiers(CLASSES[:-1], quick=()))
def test_keras(name: str, keras: Any, tmp_path: Path) -> None:
    """GPflux's Keras model is traced with unknown columns; it trains every parameter, and its
    weights are saved and loaded."""
    model, other = model_of(name), model_of(name)
    keras.utils.set_random_seed(0)
    trained = model.as_training_model()
    assert len(trained.trainable_weights) == len(model.trainable_variables)
    before = [variable.numpy() for variable in model.trainable_variables]
    X, Y = make_data()
    trained.compile(keras.optimizers.Adam(0.05))
    history = trained.fit({"inputs": X, "targets": Y}, epochs=8, batch_size=20, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert not np.array_equal(old, variable.numpy()), variable.name
    trained.save_weights(str(tmp_path / "weights"))
    loaded = other.as_prediction_model()
    loaded.load_weights(str(tmp_path / "weights")).expect_partial()
    for own, found in zip(model.predict_y(X), other.predict_y(X), strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-12)


@pytest.mark.parametrize("name", in_tiers(CLASSES, quick=("convolutional",)))
def test_fit(name: str) -> None:
    """Ours, with natural gradients for the last layer; then predictions in batches."""
    model = model_of(name)
    data = make_data()
    before = {v.name + str(i): v.numpy() for i, v in enumerate(model.trainable_variables)}
    bound = float(model.elbo(data))
    result = training.fit(
        model, data, batch_size=20, steps=30, natural_gradient=True, progress=False
    )
    assert result.elbo > bound
    for i, variable in enumerate(model.trainable_variables):
        assert not np.array_equal(before[variable.name + str(i)], variable.numpy()), variable.name
    mean, variance = model.predict_y(data[0])
    assert mean.shape == variance.shape == (NUM_DATA, 1) and np.all(variance > 0)
    in_batches = serving.predict_in_batches(
        model, data[0], method="predict_y", batch_size=7, progress=False
    )
    np.testing.assert_allclose(in_batches[0], mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(in_batches[1], variance, rtol=1e-9)


@pytest.mark.parametrize("name", in_tiers(CLASSES, quick=()))
def test_saved(name: str, tmp_path: Path) -> None:
    """Predictions of the folder are those of the model, with the same draws, for any rows."""
    model = model_of(name)
    randomise(model)
    X, Y = make_data()
    serving.save(model, tmp_path / "served")
    loaded = serving.load(tmp_path / "served")
    assert "predict_f_full_cov" not in loaded.metadata.functions
    assert (loaded.num_columns, loaded.num_outputs) == (2, 1)
    assert repr(loaded).startswith("<LoadedModel of DeepGP")
    for rows in (X, X[:3]):
        for method in ("predict_f", "predict_y"):
            for own, found in zip(
                getattr(model, method)(rows), getattr(loaded, method)(rows), strict=True
            ):
                np.testing.assert_allclose(found, own, rtol=1e-10, atol=1e-12)
    densities = model.predict_log_density((X, Y))
    np.testing.assert_allclose(loaded.predict_log_density((X, Y)), densities, rtol=1e-10)
    with pytest.raises(ValueError, match="likelihood must be None for a DeepGP, which has its own"):
        serving.save(model, tmp_path / "other", likelihood=model.likelihood)


@pytest.mark.parametrize("name", in_tiers(("wrapped", "activation", "convolutional"), quick=()))
def test_unknown_shapes(name: str) -> None:
    """Graphs of any number of rows and columns say what eager calls say."""
    model = model_of(name)
    randomise(model)
    data = make_data()
    spec = tf.TensorSpec([None, None], gpflow.default_float())
    bound = tf.function(
        lambda X, Y: model.elbo((X, Y)), input_signature=[spec, spec], autograph=False
    )
    np.testing.assert_allclose(bound(*data), model.elbo(data), rtol=1e-10)
    predict = tf.function(model.predict_y, input_signature=[spec], autograph=False)
    for rows in (1, 3):
        for own, found in zip(
            model.predict_y(data[0][:rows]), predict(data[0][:rows]), strict=True
        ):
            np.testing.assert_allclose(found, own, rtol=1e-9)


@pytest.mark.full
def test_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        for name in KINDS:
            model = model_of(name)
            data = make_data()
            assert all(v.dtype == tf.float32 for v in model.trainable_variables)
            with tf.GradientTape() as tape:
                bound = model.elbo(data)
            gradients = tape.gradient(bound, model.trainable_variables)
            assert bound.dtype == tf.float32
            assert all(np.all(np.isfinite(gradient)) for gradient in gradients), name
            assert model.predict_y(data[0])[0].dtype == tf.float32
            assert model.predict_f_samples(data[0][:3], 2).dtype == tf.float32


def test_several_outputs() -> None:
    """Two columns of Y: each output is a GP of its own, of the same hidden layer."""
    hidden = LAYERS["harmonics"](2, gpflow.mean_functions.Identity())
    both = deep.DeepGP([hidden, LAYERS["harmonics"](2)], gpflow.likelihoods.Gaussian(0.1))
    randomise(both)
    X, Y = make_data(2)
    mean, variance = both.predict_f(X)
    assert mean.shape == variance.shape == Y.shape
    for column in range(2):
        last = LAYERS["harmonics"](1)
        last.q_mu.assign(both.f_layers[1].q_mu.numpy()[:, [column]])
        last.q_sqrt.assign(both.f_layers[1].q_sqrt.numpy()[[column]])
        single = deep.DeepGP([hidden, last], gpflow.likelihoods.Gaussian(0.1))
        for own, found in zip(single.predict_f(X), (mean, variance), strict=True):
            np.testing.assert_allclose(own[:, 0], found[:, column], rtol=1e-12)


def test_mixed_outputs() -> None:
    """A coregionalised hidden layer: three outputs of two latent GPs."""
    W = np.random.default_rng(0).normal(size=(3, 2))
    kernel = LinearCoregionalization([SphericalMatern32(), SphericalMatern32()], W)
    layer = deep.StructuredLayer(kernel, SphericalHarmonics(3, [0, 1]), NUM_DATA)
    assert (layer.num_latent_gps, layer.output_dim, layer.input_dim) == (2, 3, 2)
    randomise(layer)
    X, _ = make_data()
    mean, variance, _ = layer.marginals_and_kl(X)
    model = gpflow.models.SVGP(
        kernel,
        gpflow.likelihoods.Gaussian(),
        layer.inducing_variable,
        num_latent_gps=2,
        q_mu=layer.q_mu,
        q_sqrt=layer.q_sqrt,
    )
    for own, found in zip(model.predict_f(X), (mean, variance), strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-10)


@pytest.mark.full
def test_natural_gradients_of_gpflux(keras: Any) -> None:
    """GPflux's own model for natural gradients takes the layers."""
    model = two_layers(LAYERS["harmonics"])
    wrapped = model.as_training_model(gpflux.optimization.NatGradModel)
    wrapped.natgrad_layers = model.f_layers[-1:]
    wrapped.compile([gpflow.optimizers.NaturalGradient(0.1), keras.optimizers.Adam(0.01)])
    pairs = wrapped._split_natgrad_params_and_other_vars()[0]
    assert pairs == [model.f_layers[-1].variational_parameters[0]]
    assert all(isinstance(layer, gpflux.layers.GPLayer) for layer in model.f_layers)


def test_samples_of_a_layer() -> None:
    """A layer called by itself: a distribution that becomes samples, and no gradient that is not
    finite where nothing is left to chance."""
    layer = LAYERS["harmonics"](2, gpflow.mean_functions.Identity(), num_samples=5)
    X, _ = make_data()
    assert tf.convert_to_tensor(layer(X)).shape == (5, NUM_DATA, 2)
    joint = LAYERS["harmonics"](2, gpflow.mean_functions.Identity(), full_cov=True)
    assert tf.convert_to_tensor(joint(X)).shape == (NUM_DATA, 2)
    certain = LAYERS["harmonics"](1)
    certain.q_sqrt.assign(np.zeros(certain.q_sqrt.shape))
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(tf.convert_to_tensor(certain(X)))
    gradients = tape.gradient(value, certain.trainable_variables)
    assert all(np.all(np.isfinite(g)) for g in gradients if g is not None)
