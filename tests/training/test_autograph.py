"""AutoGraph converts nothing of the library, and a user's code only where it cannot be traced."""

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


class Branching(gpflow.likelihoods.Gaussian):
    """A user's likelihood that cannot be traced without AutoGraph."""

    traced = 0

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> tf.Tensor:
        if not tf.executing_eagerly():
            type(self).traced += 1
        value = super()._variational_expectations(X, Fmu, Fvar, Y)
        if tf.reduce_sum(Fvar) > -1.0:
            value = 2.0 * value
        return value


class Doubled(gpflow.likelihoods.Gaussian):
    """What it computes."""

    def _variational_expectations(self, X: Any, Fmu: Any, Fvar: Any, Y: Any) -> tf.Tensor:
        return 2.0 * super()._variational_expectations(X, Fmu, Fvar, Y)


class BranchingLine(Line):
    """A user's model that cannot be traced without AutoGraph."""

    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        value = super().maximum_log_likelihood_objective(data)
        if value < 1.0:
            value = 2.0 * value
        return value


class DoubledLine(Line):
    def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
        return 2.0 * super().maximum_log_likelihood_objective(data)


def test_likelihoods_and_models_that_need_autograph(data) -> None:
    """By L-BFGS; by minibatches, on one device and under a strategy."""
    model = additive_svgp(data, Branching(0.3))
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        spread = BranchingLine()
    for needs, same, arguments in (
        (model, additive_svgp(data, Doubled(0.3)), {"steps": 3}),
        (BranchingLine(), DoubledLine(), MINIBATCHES),
        (spread, DoubledLine(), MINIBATCHES),
    ):
        found = fit(needs, data, progress=False, **arguments)
        expected = fit(same, data, progress=False, **arguments)
        np.testing.assert_allclose(found.elbos, expected.elbos, rtol=1e-9)
        for one, other in zip(needs.trainable_variables, same.trainable_variables, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    traced = Branching.traced
    fit(model, data, steps=3, progress=False)
    assert Branching.traced == traced > 0


def test_code_that_cannot_be_traced_either_way(data) -> None:
    """The message shows the user's line."""

    class Hopeless(Line):
        """AutoGraph does not convert comprehensions."""

        def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
            value = super().maximum_log_likelihood_objective(data)
            return value + sum([v for v in self.weights[:, 0] if v > 0])

    class Broken(Line):
        def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
            raise KeyError("no such thing")

    for arguments in (MINIBATCHES, {"steps": 3}):
        with pytest.raises(TypeError) as caught:
            fit(Hopeless(), data, progress=False, **arguments)
        assert "test_autograph.py" in str(caught.value)
        assert "for v in self.weights" in str(caught.value)
        with pytest.raises(KeyError, match="^'no such thing'$"):
            fit(Broken(), data, progress=False, **arguments)


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
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    additive = additive_svgp(data)
    svgp = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    sgpr, gpr = gpflow.models.SGPR((X, Y), kernel, harmonics), gpflow.models.GPR((X, Y), kernel)
    for model, loss_of in {
        additive: lambda: additive.training_loss((X, Y)),
        svgp: lambda: svgp.training_loss((X, Y)),
        sgpr: lambda: sgpr.training_loss(),
        gpr: lambda: gpr.training_loss(),
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
