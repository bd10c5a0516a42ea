"""What fits compile: once a model, without AutoGraph, and nothing that is out of date."""

import copy
import functools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.keras import tf_keras

from interdomain import _tracing, fit
from interdomain.core.kept import build_once
from interdomain.kernels import SphericalMatern32
from interdomain.models import DualSVGP, StructuredSGPR
from tests.parts import with_harmonics
from tests.training import conftest as models
from tests.training.conftest import MINIBATCHES, Line
from tests.training.strategy_models import regression
from tests.workers import finish, start


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the functions that the library has traced."""
    found: list[str] = []
    original = _tracing.compiled

    def compiled(function: Callable[..., Any], **options: Any) -> Any:
        def noted(*arguments: Any) -> Any:
            found.append(function.__qualname__)
            return function(*arguments)

        return original(noted, **options)

    for module in ("training.lbfgs", "training.gradient_steps", "sums.protocol"):
        monkeypatch.setattr(f"interdomain.{module}.compiled", compiled)
    yield found


def test_second_fit_compiles_nothing(data, traces, make_noisy_line) -> None:
    other_rows = (data[0][::-1].copy(), data[1][::-1].copy())
    for model, arguments, changed in [
        (models.harmonics_svgp(data), MINIBATCHES, {"optimizer": 0.003}),
        (make_noisy_line(), {**MINIBATCHES, "optimizer": tf_keras.optimizers.Adam(0.02)}, {}),
        (make_noisy_line(), {"steps": 3}, {}),
        (regression(data), {"steps": 3}, {}),
    ]:
        traces.clear()
        rows = None if isinstance(model, StructuredSGPR) else data
        fit(model, rows, progress=False, **arguments)
        assert traces
        first = len(traces)
        fit(model, rows and other_rows, progress=False, **{**arguments, **changed})
        if isinstance(model, gpflow.models.SVGP):
            model.posterior().predict_f(data[0])
        fit(model, rows, progress=False, **arguments)
        assert len(traces) == first, (arguments, traces[first:])


def test_passes_compile_once(data, traces) -> None:
    """Their objective stays the same function: a step of a DualSVGP changes numbers alone."""
    X, Y = data
    kernel = SphericalMatern32(weight_variances=np.ones(2))
    kernel, harmonics = with_harmonics(kernel, 3, fixed=True)
    likelihood = gpflow.likelihoods.Bernoulli()
    model = DualSVGP((X, (Y > 0) * 1.0), kernel, likelihood, harmonics, progress=False)
    assert fit(model, progress=False).steps > 3
    assert traces.count("_evaluation.<locals>.evaluate") == 1


def kept_by(model: Any) -> object:
    """What is kept as if it had been compiled: another object when the model has changed."""
    return build_once(model, "compiled", None, object)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "likelihood": lambda model: setattr(model, "likelihood", gpflow.likelihoods.StudentT()),
    "kernel": lambda model: setattr(model, "kernel", gpflow.kernels.Matern12()),
    "whitening": lambda model: setattr(model, "whiten", False),
    "number of rows": lambda model: setattr(model, "num_data", 7),
    "trainable": lambda model: gpflow.set_trainable(model.kernel.variance, False),
    "prior": lambda model: setattr(model.kernel.lengthscales, "prior", PRIOR),
    "columns": lambda model: setattr(model.kernel, "active_dims", [1]),
    "container": lambda model: model.options["scales"].append(2.0),
}
PRIOR = tfp.distributions.Gamma(np.float64(1.0), np.float64(1.0))


def test_changed_model_is_compiled_anew(make_svgp) -> None:
    for name, change in CHANGES.items():
        model = make_svgp()
        model.options = {"scales": [1.0]}
        first = kept_by(model)
        assert kept_by(model) is first, name
        change(model)
        assert kept_by(model) is not first, name


def test_used_model_is_not_compiled_anew(data) -> None:
    for make in (models.harmonics_svgp, models.additive_svgp, models.orthogonal_svgp):
        model = make(data)
        first = kept_by(model)
        model.elbo(data)
        model.posterior().predict_f(data[0])
        for parameter in model.trainable_parameters:
            parameter.assign(0.9 * parameter)
        assert kept_by(model) is first
        with gpflow.config.as_context(gpflow.config.Config(jitter=0.3)):
            assert kept_by(model) is not first


def test_default_adam_begins_every_fit_afresh(data, make_line, assert_same_bits) -> None:
    model = make_line()
    fit(model, data, **MINIBATCHES, optimizer=0.3, progress=False)
    fresh = copy.deepcopy(model)
    for fitted in (model, fresh):
        fit(fitted, data, **MINIBATCHES, progress=False)
    assert_same_bits(model, fresh)


def test_fitted_model_is_handled_like_any_other(data, make_svgp, tmp_path, assert_same_bits):
    model = make_svgp()
    names = set(gpflow.utilities.parameter_dict(model))
    fit(model, data, **MINIBATCHES, progress=False)
    assert set(gpflow.utilities.parameter_dict(model)) == names
    assert len(model.submodules) == len(make_svgp().submodules)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_same_bits(model, other)
        fit(other, data, steps=2, progress=False)
    frozen = gpflow.utilities.freeze(model)
    np.testing.assert_array_equal(frozen.elbo(data), model.elbo(data))
    tf.saved_model.save(model, str(tmp_path / "saved"))
    tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))


def test_checks_of_the_loss_are_not_steps(
    data, make_noisy_line, make_bayesian_line, assert_same_bits, tmp_path
) -> None:
    """A checkpoint is written after the loss was computed once more, by the compiled step."""
    size = gpflow.optimizers.NaturalGradient(0.1)
    for case, make, natural in [
        ("adam", make_noisy_line, None),
        ("diagonal q", functools.partial(make_bayesian_line, q_diag=True), size),
    ]:
        arguments = {"batch_size": 10, "steps": 3, "progress": False}
        checked, other = make(), make()
        adam, same = tf_keras.optimizers.Adam(), tf_keras.optimizers.Adam()
        saved = {"checkpoint_dir": tmp_path / case, "options": {"every": 1}}
        fit(checked, data, **arguments, **saved, optimizer=(natural, adam))
        fit(other, data, **arguments, optimizer=(natural, same))
        assert int(adam.iterations) == 3
        assert_same_bits(checked, other)


# AutoGraph converts nothing of the library, and a user's code where it is decorated.


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
    kernel, harmonics = with_harmonics(SphericalMatern32(weight_variances=[1.0, 1.0]), 1)
    additive = models.additive_svgp(data)
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
        bound = {"interdomain.models.svgp.svgp.SVGP.elbo"}
        assert library == (bound if model is additive else set()), model
        converted.clear()
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(10)
    fit(additive, dataset, steps=2, progress=False)
    assert not converted


@pytest.mark.slow
def test_rebuilt_models_and_their_graphs_are_freed() -> None:
    """In a process without this suite's own ways to free memory."""
    found = finish(start(Path(__file__).with_name("rebuilt_models.py")))
    for name, (alive, graphs_of_each) in found.items():
        assert alive == 0, f"{name}: {alive} models are alive"
        assert graphs_of_each < 1, f"{name}: {graphs_of_each:.2g} graphs of each model are kept"
