"""AutoGraph converts nothing of the library, and a user's code where it is decorated."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain import fit
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import SphericalMatern32
from tests.training.conftest import MINIBATCHES, Line, additive_svgp


class BranchingLine(Line):
    """A user's model with code that AutoGraph has to convert."""

    @tf.function
    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        value = super().maximum_log_likelihood_objective(data)
        if value < 1.0:
            value = 2.0 * value
        return value


class DoubledLine(Line):
    """What it computes."""

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        return 2.0 * super().maximum_log_likelihood_objective(data)


def test_what_needs_autograph_is_decorated(data) -> None:
    """By L-BFGS; by minibatches, on one device and under a strategy."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        spread = BranchingLine()
    for needs, arguments in (
        (BranchingLine(), {"steps": 3}),
        (BranchingLine(), MINIBATCHES),
        (spread, MINIBATCHES),
    ):
        same = DoubledLine()
        found = fit(needs, data, progress=False, **arguments)
        expected = fit(same, data, progress=False, **arguments)
        np.testing.assert_allclose(found.elbos, expected.elbos, rtol=1e-9)
        np.testing.assert_allclose(needs.weights, same.weights, rtol=1e-9, atol=1e-12)


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that AutoGraph converts, with their modules."""
    from tensorflow.python.autograph.impl import api

    found: list[str] = []
    original = api._convert_actual

    def noted(entity: Any, program_ctx: Any) -> Any:
        found.append(f"{entity.__module__}.{entity.__qualname__}")
        return original(entity, program_ctx)

    monkeypatch.setattr(api, "_convert_actual", noted)
    return found


def test_autograph_leaves_the_library_alone(data, converted) -> None:
    """In a user's own tf.function, whatever of GPflow it enters by; only the bound, which calls the
    user's likelihood, is converted."""
    X, Y = map(tf.constant, data)
    kernel = SphericalMatern32(weight_variances=[1.0, 1.0])
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=1)
    additive = additive_svgp(data)
    svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    for model, loss_of in {
        additive: lambda: additive.training_loss((X, Y)),
        svgp: lambda: svgp.training_loss((X, Y)),
    }.items():

        @tf.function
        def step(X: tf.Tensor, model: Any = model, loss_of: Any = loss_of) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of()
            gradients = tape.gradient(loss, model.trainable_variables)
            return gradients, model.predict_f(X, full_cov=True)

        gradients, _ = step(X)
        assert all(gradient is not None for gradient in gradients)
        assert converted  # GPflow's
        library = {name for name in converted if name.startswith("interdomain.")}
        bound = {"interdomain.svgp.svgp.SVGP.elbo"}
        assert library == (bound if model is additive else set()), model
        converted.clear()
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(10)
    fit(additive, dataset, steps=2, progress=False)
    assert not converted
