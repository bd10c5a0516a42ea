"""Non-finite numbers: they raise, nothing bad is kept, and the error says what is left."""

import itertools
import re
from types import SimpleNamespace
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras
from gpflow.models.training_mixins import InternalDataTrainingLossMixin

from interdomain import fit
from interdomain.training import NonFiniteError, StopFit


class Cliff(gpflow.models.BayesianModel, InternalDataTrainingLossMixin):
    """The objective is ``slope * height`` up to height 1, and ``beyond(height)`` past it."""

    def __init__(self, beyond, slope=1.0):
        super().__init__()
        self.height = gpflow.Parameter(0.0)
        self._slope = tf.constant(slope, self.height.dtype)
        self._beyond = beyond

    def maximum_log_likelihood_objective(self):
        height = tf.convert_to_tensor(self.height)
        return tf.cond(height < 1, lambda: self._slope * height, lambda: self._beyond(height))


def nan_loss(height):
    return tf.zeros_like(height) * np.nan


@tf.custom_gradient
def nan_gradient(height):
    return tf.identity(height), lambda upstream: upstream * np.nan


def run(model, rate=0.24, **arguments):
    """Heights after the steps: 0.24, 0.48, 0.72, 0.96, and 1.2, beyond the cliff."""
    with pytest.raises(NonFiniteError) as caught:
        sgd = tf_keras.optimizers.SGD(rate)
        fit(model, optimizer=sgd, steps=20, progress=False, **arguments)
    return caught.value


def test_numbers_that_are_not_finite_go_back_to_the_last_multiple_of_every(tmp_path):
    """Numbers of the loss, of gradients and of updates. No checkpoint is written of finite
    parameters with a loss that is not: step 5 leads to them, before a checkpoint is due."""
    saved = {"options": {"every": 5}, "checkpoint_dir": tmp_path / "5"}
    for beyond, arguments, message, kept in [
        (nan_loss, saved, "step 6: the loss is nan", 0),
        (nan_loss, {"options": {"every": 4}}, "step 6: the loss .* there is no checkpoint", 4),
        (nan_gradient, {"options": {"every": 1}}, "step 6: a gradient or .* after step 5", 5),
        (nan_loss, {"rate": np.inf}, "step 1: a gradient or an updated parameter", 0),
    ]:
        model = Cliff(beyond)
        error = run(model, **arguments)
        folder = arguments.get("checkpoint_dir")
        assert re.search(message, str(error)) and isinstance(error, FloatingPointError)
        assert error.kept_step == kept
        np.testing.assert_allclose(model.height, kept * 0.24, rtol=1e-6)
        if folder is None:
            assert error.checkpoint is None
            continue
        assert error.checkpoint == tf.train.latest_checkpoint(folder) == f"{folder}/step-{kept}"
        assert error.checkpoint in str(error)
        restored = Cliff(nan_loss)
        tf.train.Checkpoint(model=restored).restore(error.checkpoint).expect_partial()
        np.testing.assert_allclose(restored.height, kept * 0.24, rtol=1e-6)


@pytest.mark.parametrize(
    "beyond, reason", [(nan_loss, "the loss is"), (nan_gradient, "a gradient")]
)
def test_lbfgs_without_a_finite_point_to_go_to(beyond, reason, tmp_path):
    """The slope leads over the edge: rejected points bring the iterates near it, and no further."""
    model = Cliff(beyond)
    with pytest.raises(NonFiniteError, match=f"step \\d+: {reason}") as caught:
        fit(model, checkpoint_dir=tmp_path, progress=False)
    assert caught.value.kept_step >= 1 and caught.value.checkpoint.endswith("step-0")
    assert 0.9 < model.height.numpy() <= 1.0


class Barrier(Cliff):
    """height * slope + log(1 - height): its first step overshoots, its maximum lies inside."""

    def maximum_log_likelihood_objective(self):
        height = tf.convert_to_tensor(self.height)
        return self._slope * height + tf.math.log(1 - height)


def test_lbfgs_rejects_points_without_a_finite_loss():
    model = Barrier(nan_loss, slope=3.0)
    result = fit(model, progress=False)
    assert result.converged and "were rejected: no finite loss" in result.message
    assert model.maximum_log_likelihood_objective().numpy() == result.elbos[-1]
    np.testing.assert_allclose(model.height, 1 - 1 / 3, rtol=1e-5)


def raise_beyond(message):
    def beyond(height):
        with tf.control_dependencies([tf.debugging.Assert(height < 1, [message])]):
            return tf.identity(height)

    return beyond


FAILED = "Cholesky decomposition was not successful. The input might not be valid."


def test_no_finite_loss_to_start_from():
    """A failed factorisation is the same: TensorFlow 2.21 returns NaN, earlier ones raise."""
    for beyond, optimizer, message in [
        (nan_loss, None, "step 1: the loss is nan"),
        (raise_beyond(FAILED), None, "step 1: a matrix factorisation failed"),
        (raise_beyond(FAILED), 0.01, "step 1: a matrix factorisation failed"),
    ]:
        model = Cliff(beyond)
        model.height.assign(2.0)
        with pytest.raises(NonFiniteError, match=message):
            fit(model, optimizer=optimizer, progress=False)
        assert model.height.numpy() == 2.0


def test_bad_batch_of_a_dataset(data, make_bayesian_line, assert_same_bits):
    """q is updated first and Adam's variables second: both go back."""
    X, Y = data[0].copy(), data[1].copy()
    Y[17] = np.nan  # in the third batch
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    natural = gpflow.optimizers.NaturalGradient(0.2)
    arguments = {"optimizer": (natural, 0.05), "progress": False}
    model, reference = make_bayesian_line(), make_bayesian_line()
    with pytest.raises(NonFiniteError, match="step 3: ") as caught:
        fit(model, dataset, steps=5, options={"every": 1}, **arguments)
    assert caught.value.kept_step == 1
    fit(reference, dataset, steps=1, **arguments)
    assert_same_bits(model, reference)


def test_lbfgs_stopped_by_another_error_holds_an_iterate():
    """... and not the trial point of the line search; the exception itself is passed on."""
    model = Cliff(raise_beyond("out of cheese"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of cheese"):
        fit(model, progress=False)
    assert model.height.numpy() == 0.0


# Fits that end before their steps are done: by the clock, or by a callback.

METHODS = [{"batch_size": 8}, {"options": {"ftol": 0.0, "gtol": 0.0}}]


@pytest.fixture(params=METHODS, ids=["adam", "l-bfgs"])
def arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"progress": False, **request.param}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes between two looks at it: one when a fit begins, and one after each step."""
    ticks = itertools.count()
    fake = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    for module in ("fitting", "training.run"):
        monkeypatch.setattr(f"interdomain.{module}.time", fake)


def test_seconds_are_over(data, make_valley, arguments, tmp_path, clock, assert_same_bits) -> None:
    """At the end of a step; with a checkpoint, from which the fit goes on: of minibatches exactly
    as if it had not been stopped."""
    model, through = make_valley(), make_valley()
    fit(through, data, steps=5, **arguments)
    seen: list[int] = []
    arguments |= {"checkpoint_dir": tmp_path, "callbacks": [lambda step, model: seen.append(step)]}
    options = arguments.pop("options", {})
    result = fit(model, data, steps=20, options={"max_seconds": 3, **options}, **arguments)
    assert result.reason == "max_seconds"
    assert "max_seconds=3 were over after step 3" in result.message
    assert result.steps == len(result.elbos) == 3 and not result.converged
    assert result.checkpoint is not None and result.checkpoint.endswith("step-3")
    assert seen == [3] and result.metrics[-1]["step"] == 3
    resumed = make_valley()
    rest = fit(resumed, data, steps=5, options={"max_seconds": 1e3, **options}, **arguments)
    assert (rest.first_step, rest.steps, rest.reason) == (3, 5, "steps")
    if "batch_size" in arguments:
        assert_same_bits(through, resumed)


def test_callback_ends_the_fit(data, make_valley, arguments, tmp_path) -> None:
    seen: list[int] = []

    def stop(step: int, model: Any) -> None:
        if step == 3:
            raise StopFit("good enough", {"error": 0.5})

    def note(step: int, model: Any) -> dict[str, float]:
        seen.append(step)
        return {"seen": len(seen)}

    arguments |= {"callbacks": [stop, note], "checkpoint_dir": tmp_path}
    arguments["options"] = {**arguments.get("options", {}), "every": 1}
    model = make_valley()
    result = fit(model, data, steps=20, **arguments)
    assert result.reason == "callback" and "good enough" in result.message
    assert result.steps == 3 == len(result.elbos) and seen == [1, 2, 3]
    assert result.metrics[-1] == {"step": 3, "error": 0.5, "seen": 3}
    assert result.checkpoint is not None and result.checkpoint.endswith("step-3")
    rest = fit(model, data, steps=5, **arguments)
    assert (rest.first_step, rest.steps, rest.reason) == (3, 5, "steps")


def test_reasons_of_l_bfgs(data, make_line, assert_same_bits, tmp_path) -> None:
    """The reason stays after a resume, which restores a fit that has ended and does nothing."""
    arguments: dict[str, Any] = {"progress": False}
    for reason, options in {"converged": {}, "stalled": {"maxfun": 1}}.items():
        arguments |= {"checkpoint_dir": tmp_path / reason, "options": options}
        model, other = make_line(), make_line()
        result = fit(model, data, steps=500, **arguments)
        assert result.reason == reason and result.converged == (reason == "converged")
        assert result.steps < 500
        with pytest.warns(UserWarning, match="is of a fit that had ended, and nothing was trained"):
            again = fit(other, data, steps=900, **arguments)
        assert again.reason == reason and "had ended" in again.message
        assert again.converged == result.converged and again.steps == result.steps
        assert len(again.elbos) == 0
        np.testing.assert_allclose(again.elbo, result.elbo, rtol=1e-12)
        assert again.checkpoint == result.checkpoint
        assert_same_bits(other, model)
