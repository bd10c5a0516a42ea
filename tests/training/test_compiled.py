"""What fits compile: once a model, without AutoGraph, and nothing that is out of date."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

from interdomain import _tracing
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import SphericalMatern32
from interdomain.models import StructuredSGPR
from interdomain.training import fit
from interdomain.training.compiled import CompiledFunctions
from tests.tiers import in_tiers
from tests.training.compiled_models import MINIBATCHES, Data, additive_svgp, harmonics_svgp


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

    monkeypatch.setattr(_tracing, "compiled", compiled)
    monkeypatch.setattr("interdomain.training.gradient_steps.compiled", compiled)
    yield found


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        pytest.param(harmonics_svgp, MINIBATCHES, id="svgp-adam"),
        pytest.param(harmonics_svgp, {**MINIBATCHES, "natural_gradient": 0.1}, id="svgp-natural"),
        pytest.param(
            harmonics_svgp,
            {**MINIBATCHES, "optimizer": tf_keras.optimizers.Adam},
            id="svgp-own-optimizer",
        ),
        pytest.param(harmonics_svgp, {"steps": 3}, id="svgp-l-bfgs"),
        pytest.param(harmonics_svgp, {"method": "adam", "steps": 3}, id="svgp-full-batch"),
        # Of several q, which natural gradients tell apart and L-BFGS puts in one vector.
        pytest.param(
            additive_svgp,
            {**MINIBATCHES, "natural_gradient": 0.1},
            marks=pytest.mark.full,
            id="additive-natural",
        ),
        pytest.param(additive_svgp, {"steps": 3}, marks=pytest.mark.full, id="additive-l-bfgs"),
    ],
)
def test_second_fit_compiles_nothing(data, traces, make, arguments) -> None:
    model = make(data)
    arguments = dict(arguments)
    if "optimizer" in arguments:
        arguments["optimizer"] = arguments["optimizer"](0.02)
    fit(model, data, progress=False, **arguments)
    assert traces
    first = len(traces)
    other_rows = (data[0][::-1].copy(), data[1][::-1].copy())
    if "optimizer" not in arguments and arguments != {"steps": 3}:
        arguments["learning_rate"] = 0.003
    fit(model, other_rows, progress=False, **arguments)
    model.posterior().predict_f(data[0])
    fit(model, data, progress=False, **arguments)
    assert len(traces) == first, traces[first:]


def test_models_that_hold_their_data_compile_once(data, traces) -> None:
    kernel = SphericalMatern32()
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=1)
    for parameter in (kernel.weight_variances, kernel.bias_variance):
        gpflow.set_trainable(parameter, False)
    for model in (
        gpflow.models.GPR(data, gpflow.kernels.Matern32()),
        gpflow.models.SGPR(data, kernel, harmonics),
        StructuredSGPR(data, kernel, harmonics, progress=False),
    ):
        traces.clear()
        fit(model, steps=2, progress=False)
        assert traces
        first = len(traces)
        fit(model, steps=2, progress=False)
        assert len(traces) == first, type(model).__name__


def test_rows_added_after_a_fit_are_trained_on(data) -> None:
    """The compiled bound of the first fit is of other rows."""
    kernel = SphericalMatern32()
    gpflow.set_trainable(kernel.weight_variances, False)
    gpflow.set_trainable(kernel.bias_variance, False)
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    X, Y = data
    model = StructuredSGPR((X[:25], Y[:25]), kernel, harmonics, progress=False)
    fit(model, steps=2, progress=False)
    model.extend((X[25:], Y[25:]))
    whole = StructuredSGPR(
        data, kernel, harmonics, likelihood=copy.deepcopy(model.likelihood), progress=False
    )
    expected = -float(whole.training_loss())
    result = fit(model, steps=1, progress=False)
    assert result.elbos[0] >= expected - 1e-6 * abs(expected)
    np.testing.assert_allclose(model.training_loss(), whole_loss(model, data), rtol=1e-10)


def whole_loss(model: StructuredSGPR, data: Data) -> tf.Tensor:
    other = StructuredSGPR(
        data,
        model.kernel,
        model.inducing_variable,
        likelihood=model.likelihood,
        progress=False,
    )
    return other.training_loss()


def change_likelihood(model: Any) -> None:
    model.likelihood = gpflow.likelihoods.StudentT()


def change_kernel(model: Any) -> None:
    model.kernel = gpflow.kernels.Matern12()


def change_whitening(model: Any) -> None:
    model.whiten = False


def change_trainable(model: Any) -> None:
    gpflow.set_trainable(model.kernel, False)


def change_prior(model: Any) -> None:
    import tensorflow_probability as tfp

    one = np.float64(1.0)
    model.kernel.lengthscales.prior = tfp.distributions.Gamma(one, one)


def change_columns(model: Any) -> None:
    model.kernel.active_dims = [1]


def change_in_place(model: Any) -> None:
    model.mean_function.shift[0] = 3.0


class Shift(gpflow.mean_functions.MeanFunction):
    """With an array that can be changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = np.zeros(1)

    def __call__(self, X: Any) -> tf.Tensor:
        return tf.zeros_like(X[:, :1]) + tf.constant(self.shift)


CHANGES = [
    (change_likelihood, "adam"),
    (change_kernel, "adam"),
    (change_whitening, "adam"),
    (change_trainable, "adam"),
    (change_prior, "adam"),
    (change_columns, "adam"),
    (change_in_place, "adam"),
    (change_kernel, "l-bfgs"),
    (change_in_place, "l-bfgs"),
]
QUICK_CHANGES = [
    (change, "adam") for change in (change_kernel, change_whitening, change_trainable)
] + [(change_in_place, "adam")]


@pytest.mark.parametrize(("change", "method"), in_tiers(CHANGES, quick=QUICK_CHANGES))
def test_changed_model_is_compiled_anew(data, make_svgp, assert_same_bits, change, method) -> None:
    """A fit after a change ends where a fit of a copy ends that was never fitted before. What
    describes the model is the same for all methods: two changes, of an object and in one, are
    tried with two."""
    arguments = {"method": method, "steps": 2, "progress": False}
    model = make_svgp(mean_function=Shift())
    fit(model, data, **arguments)
    change(model)
    never_fitted = copy.deepcopy(model)
    fit(model, data, **arguments)
    fit(never_fitted, data, **arguments)
    assert_same_bits(model, never_fitted)


def test_values_in_containers_count(data, make_line) -> None:
    class Scaled(make_line):
        def __init__(self) -> None:
            super().__init__()
            self.options = {"scale": 1.0}

        def maximum_log_likelihood_objective(self, data: Any) -> tf.Tensor:
            return self.options["scale"] * super().maximum_log_likelihood_objective(data)

    model = Scaled()
    assert fit(model, data, **MINIBATCHES, progress=False).elbos[-1] < 0
    model.options["scale"] = 0.0
    np.testing.assert_array_equal(fit(model, data, **MINIBATCHES, progress=False).elbos, 0)


def test_functions_of_many_optimizers_are_forgotten(data, make_line) -> None:
    model = make_line()
    for _ in range(10):
        fit(model, data, optimizer=tf_keras.optimizers.SGD(0.01), **MINIBATCHES, progress=False)
        assert len(CompiledFunctions.of(model)._functions) <= 8


def test_changed_number_of_rows_is_compiled_anew(data, make_svgp, assert_same_bits) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(8)
    model = make_svgp()
    fit(model, dataset, steps=1, progress=False)
    model.num_data = 7 * int(model.num_data)
    fresh = copy.deepcopy(model)
    for one in (model, fresh):
        fit(one, dataset, steps=1, progress=False)
    assert_same_bits(model, fresh)


def test_changed_configuration_is_compiled_anew(data, make_svgp, assert_same_bits) -> None:
    model = make_svgp()
    fit(model, data, steps=1, progress=False)
    fresh = copy.deepcopy(model)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.3)):
        fit(model, data, steps=1, progress=False)
        fit(fresh, data, steps=1, progress=False)
    assert_same_bits(model, fresh)


def test_default_adam_begins_every_fit_afresh(data, make_line, assert_same_bits) -> None:
    model = make_line()
    fit(model, data, **MINIBATCHES, learning_rate=0.3, progress=False)
    fresh = copy.deepcopy(model)
    for one in (model, fresh):
        fit(one, data, **MINIBATCHES, progress=False)
    assert_same_bits(model, fresh)


def test_compiled_functions_go_with_the_model(data, make_line) -> None:
    model = make_line()
    fit(model, data, **MINIBATCHES, progress=False)
    fit(model, data, steps=2, progress=False)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_fits_of_many_models_do_not_warn_of_retracing(data, make_line, caplog) -> None:
    for _ in range(7):
        fit(make_line(), data, **MINIBATCHES, progress=False)
        fit(make_line(), data, steps=2, progress=False)
    assert "retracing" not in caplog.text


def test_fitted_model_is_handled_like_any_other(data, make_svgp, tmp_path, assert_same_bits):
    model = make_svgp()
    names = set(gpflow.utilities.parameter_dict(model))
    fit(model, data, **MINIBATCHES, progress=False)
    assert set(gpflow.utilities.parameter_dict(model)) == names
    assert len(model.submodules) == len(make_svgp().submodules)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_same_bits(model, other)
        fit(other, data, **MINIBATCHES, progress=False)
    frozen = gpflow.utilities.freeze(model)
    np.testing.assert_array_equal(frozen.elbo(data), model.elbo(data))
    tf.saved_model.save(model, str(tmp_path / "saved"))
    tf.train.Checkpoint(model=model).write(str(tmp_path / "checkpoint"))


@pytest.mark.parametrize("natural_gradient", in_tiers([None, 0.1], quick=[0.1]))
def test_checks_of_the_loss_are_not_steps(
    data, make_svgp, assert_same_bits, tmp_path, natural_gradient
) -> None:
    """A checkpoint is written after the loss was computed once more, by the compiled step."""
    arguments = {"batch_size": 10, "steps": 3, "natural_gradient": natural_gradient}
    checked, other = make_svgp(), make_svgp()
    adam = tf_keras.optimizers.Adam()
    folder = str(tmp_path)
    saved = {"checkpoint_dir": folder, "checkpoint_every": 1, "optimizer": adam}
    fit(checked, data, **arguments, **saved, progress=False)
    fit(other, data, **arguments, optimizer=tf_keras.optimizers.Adam(), progress=False)
    assert int(adam.iterations) == 3
    assert_same_bits(checked, other)
