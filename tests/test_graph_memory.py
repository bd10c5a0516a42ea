"""Graphs go with the model they were compiled for, and gradients are found as long as they live."""

from __future__ import annotations

import gc

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from interdomain import fit
from interdomain._tracing import compiled
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import SphericalMatern32


def graphs() -> int:
    gc.collect()
    return sum(isinstance(thing, FuncGraph) for thing in gc.get_objects())


def fit_a_model(**arguments: object) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1))
    kernel = SphericalMatern32(weight_variances=[1.0])
    harmonics = SphericalHarmonics.for_kernel(kernel, 1, max_degree=1)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics, num_data=20)
    fit(model, (X, np.sin(X)), steps=1, progress=False, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"batch_size": 10}, {}],
    ids=["adam and natural gradients", "l-bfgs"],
)
def test_graphs_go_with_the_model(arguments) -> None:
    fit_a_model(**arguments)  # what all models share is made by the first
    before = graphs()
    fit_a_model(**arguments)
    assert graphs() <= before


@tf.custom_gradient
def cube(x: tf.Tensor):
    return x**3, lambda upstream: upstream * 3 * x**2


def test_gradients_of_functions_that_are_in_use() -> None:
    """Of a function, in a graph that calls it later, and in a branch, whatever was collected."""
    function = compiled(lambda x: cube(x) + 1.0)

    def slope(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = function(x) + cube(x)
        return tape.gradient(value, x)

    in_a_branch = compiled(lambda x: tf.cond(x > 0, lambda: slope(x), lambda: -slope(x)))
    x = tf.constant(2.0, tf.float64)
    assert float(function(x)) == 9.0
    compiled(lambda x: cube(x))(x)  # goes at once
    gc.collect()
    for take in (slope, tf.function(slope), in_a_branch):
        assert float(take(x)) == 24.0
    assert float(in_a_branch(-x)) == -24.0
