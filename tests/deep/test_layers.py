"""Tests of every layer: in GPflux's Keras models, and in `deep.DeepGP`."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import LinearCoregionalization, Matern12, Matern32, SquaredExponential

from interdomain import deep, serving
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import Periodized, SphericalMatern32
from interdomain.models import JointQ, QPerBlock
from tests.conformance.helpers import assert_refused, compiled, value_and_gradients

from .cases import (
    NUM_DATA,
    convolutional,
    each_kind,
    harmonics,
    make_data,
    orthogonal,
    points,
    randomise,
    stacked,
)


@pytest.fixture
def keras() -> Iterator[Any]:
    """The Keras backend of GPflux's models, with GPflow's float type."""
    from gpflow.keras import tf_keras

    before = tf_keras.backend.floatx()
    tf_keras.backend.set_floatx("float64")
    yield tf_keras
    tf_keras.backend.set_floatx(before)


@pytest.mark.slow
def test_keras(keras: Any, tmp_path: Path) -> None:
    """GPflux's Keras model is made with an unknown number of rows; it trains every parameter, and
    its weights are saved and loaded."""
    model, other = (stacked(convolutional, orthogonal) for _ in range(2))
    keras.utils.set_random_seed(0)
    trained = model.as_training_model()
    assert len(trained.trainable_weights) == len(model.trainable_variables)
    before = [variable.numpy() for variable in model.trainable_variables]
    X, Y = make_data()
    trained.compile(keras.optimizers.Adam(0.05), run_eagerly=True)
    history = trained.fit({"inputs": X, "targets": Y}, epochs=3, batch_size=40, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]
    for old, variable in zip(before, model.trainable_variables, strict=True):
        assert not np.array_equal(old, variable.numpy()), variable.name
    trained.save_weights(str(tmp_path / "weights"))
    loaded = other.as_prediction_model()
    loaded.load_weights(str(tmp_path / "weights")).expect_partial()
    for own, found in zip(model.predict_y(X), other.predict_y(X), strict=True):
        np.testing.assert_allclose(found, own, rtol=1e-12)


def test_saved(tmp_path: Path) -> None:
    """Predictions of the folder are those of the model, with the same draws, for any rows."""
    model = stacked(convolutional, points)
    randomise(model)
    X, Y = make_data()
    serving.save(model, tmp_path / "served")
    loaded = tf.saved_model.load(str(tmp_path / "served"))
    for rows in (X, X[:3]):
        for expected, saved in zip(model.predict_y(rows), loaded.predict_y(rows), strict=True):
            np.testing.assert_allclose(saved, expected, rtol=1e-10, atol=1e-12)
    densities = model.predict_log_density((X, Y))
    np.testing.assert_allclose(loaded.predict_log_density((X, Y)), densities, rtol=1e-10)


def test_unknown_shapes() -> None:
    """The bound in a graph of any number of rows and columns is that of an eager call."""
    model = each_kind()
    randomise(model)
    X, Y = make_data()
    bound = compiled(lambda *data: model.elbo(data), [None, None], [None, None])
    for rows in (1, NUM_DATA):
        expected = model.elbo((X[:rows], Y[:rows]))
        np.testing.assert_allclose(bound(X[:rows], Y[:rows]), expected, rtol=1e-10)


def test_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        model = each_kind()
        data = make_data()
        assert all(v.dtype == tf.float32 for v in model.trainable_variables)
        bound, gradients = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)
        assert bound.dtype == tf.float32
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            assert np.all(np.isfinite(gradient)), variable.name
        assert model.predict_y(data[0])[0].dtype == tf.float32


def test_mixed_outputs() -> None:
    """A coregionalised hidden layer: three outputs of two latent GPs."""
    W = np.random.default_rng(0).normal(size=(3, 2))
    kernel = LinearCoregionalization([SphericalMatern32(), SphericalMatern32()], W)
    layer = deep.Layer(kernel, JointQ(kernel, SphericalHarmonics(3, [0, 1])), NUM_DATA)
    assert (layer.num_latent_gps, layer.output_dim, layer.input_dim) == (2, 3, 2)
    for part in (*layer.marginals_and_kl(make_data()[0])[:2], *layer.predict(make_data()[0])):
        assert part.shape == (NUM_DATA, 3)


def test_samples_of_a_layer() -> None:
    """A layer called by itself: a distribution that becomes samples, and no gradient that is not
    finite where nothing is left to chance."""
    X, _ = make_data()
    made = harmonics(2)
    made.num_samples = 5
    assert tf.convert_to_tensor(made(X)).shape == (5, NUM_DATA, 2)
    made.full_cov, made.num_samples = True, None
    assert tf.convert_to_tensor(made(X)).shape == (NUM_DATA, 2)
    certain = harmonics(1)
    certain.q_sqrt.assign(np.zeros(certain.q_sqrt.shape))
    gradients = value_and_gradients(
        lambda: tf.convert_to_tensor(certain(X)), certain.trainable_variables
    )[1]
    assert all(np.all(np.isfinite(g)) for g in gradients if g is not None)


def test_the_loss_of_a_layer() -> None:
    """In training, its share of the KL divergence and of the densities of priors."""
    layer = orthogonal(2)
    randomise(layer)
    X, _ = make_data()
    layer.kernel.variance.prior = tfp.distributions.LogNormal(*np.array([0.3, 1.0]))
    for trains in (True, False):
        layer(X, training=trains)
        share = layer.prior_kl() - layer.kernel.variance.log_prior_density()
        np.testing.assert_allclose(layer.losses, [share / NUM_DATA if trains else 0.0])


# Layers that do not fit are refused when they are put together, and named.

X, _ = make_data()


def test_hidden_outputs_that_cannot_be_seen() -> None:
    """Layers whose outputs cannot be hidden: the first one gets the data, the second anything."""
    hidden = harmonics(2, gpflow.mean_functions.Identity())
    likelihood, globe = gpflow.likelihoods.Gaussian(), SphericalMatern32(inputs="unit_vectors")
    box = Periodized(Matern32(), [-3.0, -3.0], [3.0, 3.0])
    lines = Matern12(active_dims=[0]) + Matern12(active_dims=[1])
    intervals = SumInducingVariables([VariationalFourierFeatures(-3, 3, 2)] * 2)
    for form, kernel, features, message in (
        (JointQ, box, BoxFourierFeatures.for_kernel(box, 9), "the box .* of BoxFourierFeatures"),
        (QPerBlock, lines, intervals, "interval .* of VariationalFourierFeatures, which they "),
        (JointQ, globe, SphericalHarmonics(2, [0, 1]), "unit|length"),
    ):
        layer = deep.Layer(kernel, form(kernel, features), NUM_DATA, name="last")
        deep.DeepGP([layer], likelihood)
        with pytest.raises(ValueError, match=rf"f_layers\[1\] \(last\): .*({message})"):
            deep.DeepGP([hidden, layer], likelihood)


def test_what_does_not_fit() -> None:
    likelihood, wide = gpflow.likelihoods.Gaussian(), SquaredExponential(lengthscales=np.ones(3))
    q = JointQ(wide, InducingPoints(X[:4]))
    assert_refused(
        [
            (lambda: deep.Layer(wide, q, NUM_DATA, name="first"), "^first: .*2 columns"),
            (
                lambda: harmonics(3, gpflow.mean_functions.Identity(), name="first"),
                "^first: mean_function must return 3 columns, .* found 2",
            ),
            (
                lambda: deep.DeepGP([harmonics(1), points(1, name="last")], likelihood),
                r"f_layers\[1\] \(last\): .*X has 1 columns, which do not fit InducingPoints",
            ),
        ]
    )


def test_gpflux_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpflux", None)
    monkeypatch.delitem(sys.modules, "interdomain.deep")
    with pytest.raises(ImportError, match=r"pip install 'interdomain\[deep\]'"):
        importlib.import_module("interdomain.deep")
