"""tf.function with an unknown number of rows, XLA, SavedModel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import gpflow
import pytest
import tensorflow as tf
from gpflow.posteriors import PrecomputeCacheType

from .cases import FIRST_AND_LAST_KIND, ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .helpers import (
    assert_close,
    make_data,
    make_inputs,
    make_svgp,
    value_and_gradients,
)
from .selection import cases, each_class_quick_two_kinds, param


def rows(case: Case) -> tf.TensorSpec:
    return tf.TensorSpec([None, case.input_dim], gpflow.default_float())


def compiled_step(case: Case, model: gpflow.models.SVGP, **options: bool) -> Callable:
    """Objective with gradients for any number of rows."""
    variables = model.trainable_variables
    outputs = tf.TensorSpec([None, 1], gpflow.default_float())

    @tf.function(input_signature=[rows(case), outputs], **options)
    def step(X: tf.Tensor, Y: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        return value_and_gradients(lambda: model.elbo((X, Y)), variables)

    return step


def assert_steps(case: Case, model: gpflow.models.SVGP, step: Callable) -> None:
    for num_data in (4, 9):
        data = make_data(case, num_data=num_data)
        expected = value_and_gradients(lambda: model.elbo(data), model.trainable_variables)  # noqa: B023
        value, gradients = step(*data)
        assert_close(value, expected[0])
        for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
            assert_close(gradient, expected_gradient)


@each_class_quick_two_kinds
def test_unknown_number_of_rows(case: Case) -> None:
    """Unwhitened with a full q: it has most to do, marginal predictions included. XLA compiles the
    same graph, as tracing takes long. test_unknown_shapes.py compiles the covariances of every
    case, with their gradients."""
    model = make_svgp(case, whiten=False)
    step = compiled_step(case, model, autograph=False)
    assert_steps(case, model, step)
    data = make_data(case, num_data=9)
    expected = step(*data)
    value, gradients = tf.function(lambda: step(*data), autograph=False, jit_compile=True)()
    assert_close(value, expected[0])
    for gradient, expected_gradient in zip(gradients, expected[1], strict=True):
        assert_close(gradient, expected_gradient, rtol=1e-7)


@cases(FIRST_AND_LAST_KIND, quick=FIRST_AND_LAST_KIND[:1])
def test_decorator_of_a_user(case: Case) -> None:
    """With AutoGraph, which tf.function has by default and the other tests leave out."""
    model = make_svgp(case, whiten=False)
    assert_steps(case, model, compiled_step(case, model))


@pytest.mark.parametrize(
    ("case", "cached"),
    [
        param(case, name == "cached", id=f"{case.name}-{name}", quick=case in ONE_OF_EACH_KIND)
        for case, name in zip(REPRESENTATIVES, itertools.cycle(("fused", "cached")), strict=False)
    ],
)
def test_compiled_posterior(case: Case, cached: bool) -> None:
    """Joint predictions, of every other case from a cache; test_saved_model compiles marginal
    ones, both ways."""
    model = make_svgp(case, num_latent_gps=2)
    source = model.posterior() if cached else model
    compiled = tf.function(
        lambda X: source.predict_f(X, full_cov=True), input_signature=[rows(case)], autograph=False
    )
    for num_rows in (1, 6):
        X = make_inputs(case, num_rows)
        expected = model.predict_f(X, full_cov=True)
        assert_close(compiled(X), expected, rtol=case.kernel_rtol)


@each_class_quick_two_kinds
def test_saved_model(case: Case, tmp_path: Path) -> None:
    """A model and a posterior with a VARIABLE cache, their predictions compiled for any number of
    rows, exported and reloaded without this library's classes."""
    model = make_svgp(case, num_latent_gps=2)
    compiled = {"input_signature": [rows(case)], "autograph": False}
    model.predict = tf.function(model.predict_f, **compiled)
    posterior = model.posterior(PrecomputeCacheType.VARIABLE)
    posterior.predict = tf.function(posterior.predict_f, **compiled)
    both = tf.Module()
    both.model, both.posterior = model, posterior
    tf.saved_model.save(both, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for num_rows in (1, 6):
        X = make_inputs(case, num_rows)
        expected = model.predict_f(X)
        assert_close(loaded.model.predict(X), expected)
        assert_close(loaded.posterior.predict(X), expected)
