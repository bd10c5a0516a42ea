"""``VecchiaSGPR`` with Student-t noise against a dense variational solution, and its fit."""

import copy
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.models import StructuredSGPR, VecchiaSGPR
from interdomain.models.vecchia_sgpr import student_t
from interdomain.models.vecchia_sgpr.reweighting import expected_squares, train_noise
from tests.models.vecchia_sgpr.dense_student_t import (
    DEGREES,
    NUM_ROWS,
    SCALE,
    Dense,
    Spread,
    local,
    rows,
)
from tests.parts import finite_rank, with_waves

NEW = np.random.default_rng(4).uniform(-1, 1, size=(6, 2))


def features() -> tuple[Any, Any]:
    return finite_rank(*with_waves(gpflow.kernels.Matern32(lengthscales=1.5), rows()[0], 12))


def make(block: Any = (), *, data: Any = None, **arguments: Any) -> VecchiaSGPR:
    defaults: dict[str, Any] = {
        "local_kernel": local(),
        "num_neighbours": NUM_ROWS,
        "likelihood": gpflow.likelihoods.StudentT(SCALE, DEGREES),
        "merge": "exact",
        "progress": False,
    }
    return VecchiaSGPR(rows() if data is None else data, *block, **(defaults | arguments))


@pytest.mark.parametrize("with_features", [False, True])
def test_with_all_rows_it_is_the_dense_solution(with_features: bool) -> None:
    """Several outputs, given weights, and rows at one place, which are merged."""
    X, Y = rows(2)
    X[-6:] = X[:6]
    given = np.random.default_rng(0).uniform(0.5, 2, NUM_ROWS)
    model = make(features() if with_features else (), data=(X, Y), noise_weights=given)
    kernel = model.kernel + model.local_kernel if with_features else model.local_kernel
    model.reweight(200, tolerance=1e-9)
    X, Y = model.arrays
    dense = Dense(np.asarray(kernel(X)) + 1e-10 * np.eye(NUM_ROWS), Y, model.noise_weights)
    np.testing.assert_allclose(model.expected_weights, dense.omega, rtol=1e-6)
    np.testing.assert_allclose(model.elbo(), dense.bound, rtol=1e-6)
    mean, variance = model.predict_f(X)
    np.testing.assert_allclose(mean, dense.mean, atol=1e-6)
    np.testing.assert_allclose(variance[:, 0], np.diag(dense.covariance), atol=1e-6)
    if not with_features:  # the bound has gradients to the noise, at fixed weights
        for name, parameter in (("s", model.likelihood.scale), ("df", model.likelihood.df)):
            with tf.GradientTape() as tape:
                value = model.elbo()
            slope = tape.gradient(value, parameter.unconstrained_variable)
            values = []
            for step in (1e-5, -1e-5):
                variable = parameter.unconstrained_variable
                variable.assign_add(step)
                values.append(float(model.elbo()))
                variable.assign_sub(step)
            np.testing.assert_allclose(slope, np.diff(values)[0] / -2e-5, rtol=1e-6, err_msg=name)


def test_predictions_copies_and_more_rows(tmp_path: Any) -> None:
    """The variance and the densities of y, in batches and compiled; weights go with copies and
    with checkpoints; rows that are added have weights by what was predicted for them."""
    X, Y = rows()
    model = make(data=(X[:25], Y[:25]), num_neighbours=5)
    model.reweight(3)
    mean, variance = (np.asarray(part) for part in model.predict_f(NEW))
    noise = SCALE**2 * DEGREES / (DEGREES - 2)
    np.testing.assert_allclose(model.predict_y(NEW)[1], variance + noise, rtol=1e-7)
    targets = mean + np.linspace(-3, 3, len(NEW))[:, None]
    densities = student_t.log_density(mean, variance, SCALE, DEGREES, targets)
    in_batches = idm.predict_in_batches(
        model, NEW, Y=targets, method="predict_log_density", batch_size=4, progress=False
    )
    for found in (model.predict_log_density((NEW, targets)), in_batches):
        np.testing.assert_allclose(found, densities, rtol=1e-9)
    value = float(model.elbo())
    tf.train.Checkpoint(model=model).write(str(tmp_path / "model"))
    fresh = make(data=(X[:25], Y[:25]), num_neighbours=5)
    for copied in (copy.deepcopy(model), gpflow.utilities.deepcopy(model)):
        np.testing.assert_allclose(copied.elbo(), value)
        copied.reweight(1)
        np.testing.assert_allclose(model.elbo(), value)
    compiled = tf.function(fresh.elbo, autograph=False)
    assert abs(float(compiled()) - value) > 0.1
    tf.train.Checkpoint(model=fresh).read(str(tmp_path / "model")).assert_consumed()
    np.testing.assert_allclose(fresh.elbo(), value)
    with pytest.raises(tf.errors.UnknownError, match="compile it again"):
        compiled()
    before = idm.predict_in_batches(model, NEW, progress=False)[0]
    model.weigh(np.full(25, 0.5))
    assert np.max(np.abs(idm.predict_in_batches(model, NEW, progress=False)[0] - before)) > 1e-3
    mean, variance = model.predict_f(X[25:])
    squares = np.square(Y[25:] - mean) + variance
    model.extend((X[25:], Y[25:]))
    expected = student_t.expected_weights(squares[:, 0], SCALE**2, DEGREES, 1)
    np.testing.assert_allclose(model.expected_weights[25:], expected)
    assert len(model.ordered.noise_weights) == NUM_ROWS and np.isfinite(model.elbo())


@pytest.mark.parametrize("with_features", [False, True])
def test_fit(with_features: bool) -> None:
    """Heavy tails of a smooth function: intervals and degrees of freedom are near the true ones,
    far outliers do not count, and what is not trainable stays."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 2))
    f = np.sin(3 * X[:, :1]) + X[:, 1:]
    Y = f + 0.2 * rng.standard_t(3, size=f.shape)
    Y[:400:50] += 1_000.0
    block, likelihood = features() if with_features else (), gpflow.likelihoods.StudentT()
    model = make(block, data=(X[:400], Y[:400]), num_neighbours=8, likelihood=likelihood)
    options: dict[str, Any] = {"steps": 1, "options": {"parts": "both"}} if with_features else {}
    result = idm.fit(model, progress=False, **options)
    assert np.sqrt(np.mean(np.square(model.predict_f(X[400:])[0] - f[400:]))) < 0.1
    ends = idm.predict_quantiles(model, X[400:], [0.05, 0.95], progress=False)
    inside = (ends[:, 0, 0] < Y[400:, 0]) & (Y[400:, 0] < ends[:, 0, 1])
    assert 0.85 < np.mean(inside) < 0.95
    assert 0.1 < likelihood.scale.numpy() < 0.3
    np.testing.assert_allclose(result.elbo, model.elbo())
    if not with_features:
        gpflow.set_trainable(likelihood.df, False)
        likelihood.df.assign(DEGREES)
        scale = likelihood.scale.numpy()
        train_noise(model, expected_squares(model))
        assert likelihood.scale.numpy() != scale
        np.testing.assert_allclose(likelihood.df, DEGREES, rtol=1e-6)


def test_float32() -> None:
    """A fit in float32 keeps the weights of rows in float64, as checkpoints do."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model = make(num_neighbours=8, likelihood=gpflow.likelihoods.StudentT())
        idm.fit(model, steps=1, progress=False)
        assert model.expected_weights.dtype == np.float64
        model.weigh(np.ones(NUM_ROWS, np.float32))
        assert np.isfinite(model.elbo()) and idm.predict_quantiles(model, NEW).shape == (6, 1, 3)


def test_bad_input() -> None:
    X, Y = rows()
    student, spread = gpflow.likelihoods.StudentT, Spread()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"likelihood": student(df=2.0)}, "df must be above 2.01"),
        ({"likelihood": student(scale=spread)}, "a scale that depends on x"),
        ({"likelihood": student(), "noise_variance": 1.0}, "noise_variance: found 1.0"),
        ({"likelihood": student(), "num_neighbours": 0}, "num_neighbours: found 0"),
        ({"likelihood": gpflow.likelihoods.Gaussian(spread)}, "Gaussian of one noise variance"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            make(**arguments)
    with pytest.raises(
        ValueError,
        match="found StudentT with densities of its own; pass it to interdomain.models.DualSVGP",
    ):
        StructuredSGPR((X, Y), *features(), likelihood=student())
    with pytest.raises(ValueError, match="num_neighbours must be an integer of 1 or more, found 0"):
        make(features()).search(0)
    with pytest.raises(ValueError, match="must be a StudentT for weights of rows, found Gaussian"):
        make(likelihood=None).reweight()
    # Targets that repeat exactly, and no noise.
    X, Y = np.repeat(X, 5, axis=0), np.repeat(np.sign(Y), 5, axis=0)
    for merge in ("off", "exact"):
        model = make(data=(X, Y), num_neighbours=8, merge=merge, likelihood=student())
        with pytest.raises(ValueError, match="scale of the Student-t noise fell"):
            idm.fit(model, progress=False)
    # A lower bound of the scale is kept.
    bounded = gpflow.likelihoods.StudentT(scale=0.3, df=4.0, scale_lower_bound=0.01)
    model = make(data=(X, Y), num_neighbours=8, likelihood=bounded)
    idm.fit(model, progress=False)
    assert 0.01 <= float(model.likelihood.scale.numpy()) < 0.1
