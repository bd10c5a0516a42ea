"""tf.function with an unknown number of rows, XLA, SavedModel."""

from __future__ import annotations

from pathlib import Path

import gpflow
import tensorflow as tf
from gpflow.posteriors import PrecomputeCacheType

from .cases import Case
from .helpers import (
    assert_close,
    make_data,
    make_inputs,
    make_svgp,
    value_and_gradients,
)


def rows(case: Case) -> tf.TensorSpec:
    return tf.TensorSpec([None, case.input_dim], gpflow.default_float())


def test_unknown_number_of_rows_and_xla(case: Case) -> None:
    """Objective with gradients, unwhitened with a full q: it has most to do. XLA compiles the same
    graph, as tracing takes long, and a prediction."""
    model = make_svgp(case, whiten=False)
    variables = model.trainable_variables
    outputs = tf.TensorSpec([None, 1], gpflow.default_float())

    @tf.function(input_signature=[rows(case), outputs])
    def compiled(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        return value_and_gradients(lambda: model.elbo((X, Y)), variables)

    for num_data in (4, 9):
        data = make_data(case, num_data=num_data)
        expected = value_and_gradients(lambda: model.elbo(data), variables)  # noqa: B023
        value, gradients = compiled(*data)
        assert_close(value, expected[0])
        for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
            assert_close(gradient, expected_gradient)

    X = make_inputs(case, 6)
    by_xla = tf.function(lambda: (*compiled(*data), model.predict_f(X)), jit_compile=True)
    value, gradients, prediction = by_xla()
    assert_close(value, expected[0])
    for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-7)
    assert_close(prediction, model.predict_f(X))


def test_compiled_posterior(case: Case) -> None:
    """Joint predictions; marginal ones are compiled in test_saved_model."""
    model = make_svgp(case, num_latent_gps=2)
    posterior = model.posterior()
    cached, direct = (
        tf.function(lambda X, m=m: m.predict_f(X, full_cov=True), input_signature=[rows(case)])
        for m in (posterior, model)
    )
    for num_rows in (1, 6):
        X = make_inputs(case, num_rows)
        expected = model.predict_f(X, full_cov=True)
        assert_close(cached(X), expected, rtol=case.kernel_rtol)
        assert_close(direct(X), expected, rtol=case.kernel_rtol)


def test_saved_model(case: Case, tmp_path: Path) -> None:
    """A model exported with its compiled prediction and one with a VARIABLE cache, reloaded
    without this library's classes."""
    model = make_svgp(case, num_latent_gps=2)
    posterior = model.posterior(PrecomputeCacheType.VARIABLE)
    model.predict = tf.function(model.predict_f, input_signature=[rows(case)])
    posterior.predict = tf.function(posterior.predict_f, input_signature=[rows(case)])
    inputs = [make_inputs(case, num_rows) for num_rows in (1, 6)]
    expected = [model.predict_f(X) for X in inputs]
    for name, module in (("model", model), ("posterior", posterior)):
        tf.saved_model.save(module, str(tmp_path / name))
        loaded = tf.saved_model.load(str(tmp_path / name))
        for X, prediction in zip(inputs, expected, strict=True):
            assert_close(module.predict(X), prediction, rtol=case.kernel_rtol, message=name)
            assert_close(loaded.predict(X), prediction, message=name)
