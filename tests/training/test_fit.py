"""The effects of a fit on a model, against GPflow's own loops."""

import re

import gpflow
import keras
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

from interdomain import _progress, fit
from interdomain.kernels import SphericalMatern52
from interdomain.models import DualSVGP, StructuredSGPR, VecchiaSGPR
from interdomain.training import FitResult
from interdomain.training.batches import Minibatches
from interdomain.training.data_checks import batches_of
from tests.parts import with_harmonics

TYPES = (np.float64, np.float64)
NATURAL = gpflow.optimizers.NaturalGradient(0.3)


def test_lbfgs_equals_gpflow(data, make_valley):
    ours, theirs = make_valley(), make_valley()
    result = fit(ours, data, steps=15, progress=False)
    closure = theirs.training_loss_closure(tuple(map(tf.constant, data)), compile=False)
    gpflow.optimizers.Scipy().minimize(
        closure, theirs.trainable_variables, options={"maxiter": 15}, compile=False
    )
    for a, b in zip(ours.trainable_variables, theirs.trainable_variables, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    assert isinstance(result, FitResult)
    assert (result.steps, result.first_step, result.converged) == (15, 0, False)
    assert len(result.elbos) == 15 and np.all(np.diff(result.elbos) > 0)
    np.testing.assert_allclose(result.elbo, -ours.training_loss(data), rtol=1e-12)
    assert result.checkpoint is None and result.seconds > 0


@pytest.mark.parametrize("family", [tf_keras, keras])
def test_optimizers_equal_a_plain_loop(family, data, make_noisy_line):
    """A fit equals the optimizer in an eager loop over the same batches."""
    ours, theirs = make_noisy_line(), make_noisy_line()
    settings = {"batch_size": 16, "steps": 7, "progress": False, "options": {"seed": 2}}
    result = fit(ours, data, optimizer=family.optimizers.Adam(0.05), **settings)
    optimizer = family.optimizers.Adam(0.05)
    batches = Minibatches(data, TYPES, 16, seed=2)
    for step in range(7):
        with tf.GradientTape() as tape:
            loss = theirs.training_loss(batches.batch(step))
        np.testing.assert_allclose(result.elbos[step], -loss, rtol=1e-9)
        gradients = tape.gradient(loss, theirs.trainable_variables)
        optimizer.apply_gradients(zip(gradients, theirs.trainable_variables, strict=True))
    for a, b in zip(ours.trainable_variables, theirs.trainable_variables, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


class TwoSVGPs(gpflow.models.BayesianModel, gpflow.models.ExternalDataTrainingLossMixin):
    """Stands for the models with several q's: one per output here."""

    def __init__(self, models):
        super().__init__()
        self.models = models

    @property
    def variational_parameters(self):
        return [(model.q_mu, model.q_sqrt) for model in self.models]

    def maximum_log_likelihood_objective(self, data):
        X, Y = data
        return tf.add_n([m.elbo((X, Y[:, i : i + 1])) for i, m in enumerate(self.models)])


def test_one_natural_gradient_step_is_the_exact_posterior(data, make_svgp):
    """Gaussian likelihood, all of the data, step size 1, and only q trainable: of two latent GPs,
    and of two q's."""
    X, Y = data[0], np.hstack([data[1], data[1] ** 2])
    joint, pair = make_svgp(num_latent_gps=2), TwoSVGPs([make_svgp(), make_svgp()])
    for model in joint, pair:
        gpflow.set_trainable(model, False)
        result = fit(
            model, (X, Y), steps=1, progress=False, optimizer=gpflow.optimizers.NaturalGradient(1.0)
        )
        reference = gpflow.models.SGPR(
            (X, Y), joint.kernel, joint.inducing_variable, noise_variance=1.0
        )
        np.testing.assert_allclose(bound(model, (X, Y)), reference.elbo(), rtol=1e-7)
        assert result.elbos[0] < float(reference.elbo()) - 1
        assert not model.trainable_variables  # the flags are the user's


def bound(model, data):
    return -float(model.training_loss(data))


def test_minibatches_are_epochs_and_a_function_of_the_step():
    X = np.arange(23.0)[:, None]
    batches = Minibatches((X, X), TYPES, 5, seed=1)
    rows = [np.asarray(batches.batch(step)[0])[:, 0] for step in range(12)]
    for epoch in range(3):
        seen = np.concatenate(rows[4 * epoch : 4 * epoch + 4])
        assert len(seen) == len(set(seen)) == 20
    assert not np.array_equal(rows[0], rows[4])
    again = Minibatches((X, X), TYPES, 5, seed=1)
    for step in (11, 2, 7):
        X_batch, Y_batch = again.batch(step)
        np.testing.assert_array_equal(X_batch[:, 0], rows[step])
        np.testing.assert_array_equal(X_batch, Y_batch)
    other = Minibatches((X, X), TYPES, 5, seed=2)
    assert not np.array_equal(other.batch(0)[0][:, 0], rows[0])


def test_minibatches_of_files_stay_there(data, make_line, tmp_path):
    """Files of any size: nothing but batches is copied, though the type is another."""
    model, whole = make_line(), make_line()
    for name, array in zip("XY", data, strict=True):
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32))
    maps = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    batches = batches_of(model, maps, batch_size=8, seed=0)
    for mapped, kept in zip(maps, batches.arrays, strict=True):
        assert np.shares_memory(mapped, kept)
    assert [spec.dtype for spec in batches.specs] == [tf.float64, tf.float64]
    converted = tuple(array.astype(np.float32).astype(np.float64) for array in data)
    found, expected = (
        fit(one, rows, batch_size=8, steps=4, progress=False)
        for one, rows in ((model, maps), (whole, converted))
    )
    np.testing.assert_array_equal(found.elbos, expected.elbos)


def test_default_float32(data, make_bayesian_line):
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        rows = tuple(array.astype(np.float32) for array in data)
        for arguments in ({"batch_size": 8, "optimizer": (NATURAL, 0.01)}, {}):
            model = make_bayesian_line()
            before = float(model.training_loss(rows))
            fit(model, data, steps=5, progress=False, **arguments)
            assert float(model.training_loss(rows)) < before
            assert {v.dtype for v in model.trainable_variables} == {tf.float32}


@pytest.mark.parametrize("optimizer", [0.01, None])
def test_callbacks(optimizer, data):
    """Called on schedule and once at the end, with the parameters of their step."""
    model = gpflow.models.GPR(data, gpflow.kernels.SquaredExponential())
    calls = []

    def evaluate(step, given):
        assert given is model
        calls.append(step)
        return {"bound": model.log_marginal_likelihood()}

    given = [evaluate, lambda step, model: None, lambda step, model: {"twice": 2 * step}]
    settings = {"steps": 7, "callbacks": given, "progress": False, "options": {"every": 3}}
    result = fit(model, optimizer=optimizer, **settings)
    assert calls == [3, 6, 7]
    assert [metrics["step"] for metrics in result.metrics] == [3, 6, 7]
    assert [metrics["twice"] for metrics in result.metrics] == [6, 12, 14]
    bounds = [metrics["bound"] for metrics in result.metrics]
    if optimizer is None:  # records the bound it arrived at
        np.testing.assert_allclose(bounds, result.elbos[[2, 5, 6]], rtol=1e-12)
    else:  # records the bound it set out from
        np.testing.assert_allclose(bounds[:2], result.elbos[[3, 6]], rtol=1e-12)


def test_progress_bar(data, make_line, capsys):
    """With what a callback measures; one callback needs no list."""
    settings = {"batch_size": 8, "steps": 30, "options": {"every": 10}}
    result = fit(make_line(), data, callbacks=lambda step, _: {"half": step / 2}, **settings)
    out, err = capsys.readouterr()
    assert out == ""
    last = err.strip().split("\r")[-1]
    assert "30/30" in last and f"elbo={result.elbo:.6g}" in last and "half=15" in last
    # An average over recent steps: past the first estimates, and not the last one alone.
    assert result.elbos.min() < result.elbo < result.elbos.max()
    assert result.elbo != result.elbos[-1]
    model = regression(np.sin(np.arange(9.0))[:, None])
    fit(model)
    assert re.search(r"fit: \d+ steps, at most 50 \[.*elbo=", capsys.readouterr().err)


def test_fits_without_progress_bars(make_line, data, monkeypatch):
    """Bars of passes are hidden, too, although the models would show them."""
    shown = []
    bar = _progress.tqdm
    monkeypatch.setattr(
        _progress, "tqdm", lambda **how: shown.append(not how["disable"]) or bar(**how)
    )
    fit(make_line(), data, batch_size=8, steps=1, progress=False)
    X = np.linspace(-1, 1, 30)[:, None]
    harmonics = StructuredSGPR((X, X), *with_harmonics(SphericalMatern52(), 2, 1))
    neighbours = VecchiaSGPR((X, X), local_kernel=gpflow.kernels.Matern32())
    shown.clear()
    fit(harmonics, progress=False)
    fit(neighbours, steps=1, progress=False)
    assert shown and not any(shown)


def regression(targets, inducing_variable=None):
    """A regression by harmonics, or by points; the noise variance is fixed."""
    X = np.linspace(-1, 1, len(targets))[:, None]
    parts = gpflow.kernels.Matern32(), inducing_variable
    if inducing_variable is None:
        parts = with_harmonics(SphericalMatern52(), 2, 1)
    model = StructuredSGPR((X, targets), *parts, progress=False)
    gpflow.set_trainable(model.likelihood, False)
    return model


@pytest.mark.filterwarnings("error::UserWarning:tests")
def test_nothing_to_do(make_line, data):
    """The fit has converged where it starts; the objective is that of the model, without a
    warning about checkpoints."""
    one_row = regression(np.zeros((1, 1)))
    for parameter in (one_row.kernel.variance, one_row.kernel.lengthscale):
        parameter.assign(1e-9)  # no gradient is above the tolerance of L-BFGS
    cases = {
        "flat": (make_line(), (data[0], np.zeros_like(data[1]))),
        "one row": (one_row, None),
        "all frozen": (regression(np.ones((9, 1)), np.array([[-0.5], [0.5]])), None),
    }
    for name, (model, rows) in cases.items():
        result = fit(model, rows, progress=False)
        assert (result.steps, result.reason, result.converged) == (0, "converged", True), name
        expected = -model.training_loss(*(() if rows is None else (rows,)))
        np.testing.assert_allclose(result.elbo, expected, rtol=1e-12, atol=1e-12, err_msg=name)
    assert "no parameter is left to train" in result.message and len(result.frozen) == 3


def dual(X, Y):
    kernel, few = with_harmonics(SphericalMatern52(weight_variances=np.ones(2)), 1)
    likelihood = gpflow.likelihoods.Bernoulli()
    return DualSVGP((X, (Y > 0) * 1.0), kernel, likelihood, few, progress=False)


@pytest.mark.parametrize("passes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_fit_that_had_ended(passes, make_line, data, tmp_path):
    """A call with nothing to do has the objective of the model, and leaves it as it was."""
    rows, options = (None, {}) if passes else (data, {"batch_size": len(data[0])})
    arguments = {"steps": 3, "checkpoint_dir": tmp_path, "progress": False, **options}
    first, again = (dual(*data) if passes else make_line() for _ in range(2))
    fit(first, rows, **arguments)
    with pytest.warns(UserWarning, match="had ended, and nothing was trained"):
        result = fit(again, rows, **arguments)
    for model in (first, again):
        expected = model.elbo() if rows is None else -model.training_loss(rows)
        np.testing.assert_allclose(result.elbo, expected, rtol=1e-9)
