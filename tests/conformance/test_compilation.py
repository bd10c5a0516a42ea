"""tf.function with an unknown number of rows, XLA, SavedModel."""

from __future__ import annotations

from pathlib import Path

import gpflow
import pytest
import tensorflow as tf
from gpflow.posteriors import PrecomputeCacheType

from .cases import CASES, Case
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
    """Objective with gradients, unwhitened with a full q: it has most to do, marginal predictions
    included. XLA compiles the same graph, as tracing takes long."""
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

    value, gradients = tf.function(lambda: compiled(*data), jit_compile=True)()
    assert_close(value, expected[0])
    for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-7)


@pytest.mark.parametrize(
    ("case", "cached"),
    [
        pytest.param(case, bool(k % 2), id=f"{case.name}-{('fused', 'cached')[k % 2]}")
        for k, case in enumerate(CASES)
    ],
)
def test_compiled_posterior(case: Case, cached: bool) -> None:
    """Joint predictions, of every other case from a cache; test_saved_model compiles marginal
    ones, both ways."""
    model = make_svgp(case, num_latent_gps=2)
    source = model.posterior() if cached else model
    compiled = tf.function(
        lambda X: source.predict_f(X, full_cov=True), input_signature=[rows(case)]
    )
    for num_rows in (1, 6):
        X = make_inputs(case, num_rows)
        expected = model.predict_f(X, full_cov=True)
        assert_close(compiled(X), expected, rtol=case.kernel_rtol)


def test_saved_model(case: Case, tmp_path: Path) -> None:
    """A model and a posterior with a VARIABLE cache, their predictions compiled for any number of
    rows, exported and reloaded without this library's classes."""
    model = make_svgp(case, num_latent_gps=2)
    model.predict = tf.function(model.predict_f, input_signature=[rows(case)])
    posterior = model.posterior(PrecomputeCacheType.VARIABLE)
    posterior.predict = tf.function(posterior.predict_f, input_signature=[rows(case)])
    both = tf.Module()
    both.model, both.posterior = model, posterior
    tf.saved_model.save(both, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for num_rows in (1, 6):
        X = make_inputs(case, num_rows)
        expected = model.predict_f(X)
        assert_close(loaded.model.predict(X), expected)
        assert_close(loaded.posterior.predict(X), expected)
