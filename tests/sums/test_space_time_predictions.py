"""Space and time: predictions and the rest of a model's life, against GPflow's dense model."""

import copy
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.models import StructuredSGPR
from interdomain.sums import dense
from interdomain.sums.chain import posterior as posterior_of_chain
from interdomain.sums.chain.sums import ChainSums
from tests.sampling.moments import NUM_SAMPLES, assert_moments
from tests.sums.test_space_time import (
    CASES,
    HOURS,
    NEW,
    RNG,
    X,
    Y,
    meters,
    several,
    with_stations,
    with_waves,
)

pytestmark = pytest.mark.usefixtures("no_jitter")

NOISE = 0.1
MANY = np.column_stack(
    [RNG.uniform([-1, -1, 0], [1, 1, 10], size=[300, 3]), RNG.integers(6, size=300)]
)
"""Places without a station, and hours after the last row, inside of the box."""


def both(make: Any, rows: Any = (X, Y), **options: Any) -> tuple[Any, Any]:
    """The model, and GPflow's."""
    kernel, inducing_variable = make()
    options = {"noise_variance": NOISE, **options}
    model = StructuredSGPR(rows, kernel, inducing_variable, charge="trace", **options)
    assert isinstance(model._features.sums, ChainSums)
    return model, gpflow.models.SGPR(rows, kernel, inducing_variable, **options)


def assert_same(found: Any, expected: Any, rtol: float = 1e-7) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("make", CASES)
def test_many_rows(make: Any, few: int, monkeypatch: Any) -> None:
    """Rows by rows, and by windows; eagerly, in batches and in graphs of unknown numbers."""
    monkeypatch.setattr(posterior_of_chain, "_FEW", few)
    model, right = both(make)
    expected = right.predict_f(MANY)
    posterior = model.posterior()
    signature = [tf.TensorSpec([None, 4], tf.float64)]
    graph = tf.function(posterior.predict_f, autograph=False, input_signature=signature)
    assert_same(posterior.predict_f(MANY), expected)
    assert_same(graph(MANY), expected)
    assert_same([part[:9] for part in expected], graph(MANY[:9]))
    assert [len(part) for part in graph(MANY[:0])] == [0, 0]
    assert_same(idm.predict_in_batches(model, MANY, batch_size=70, progress=False), expected)
    assert_same(idm.predict_in_batches(model, MANY, progress=False), expected)
    assert_same(posterior.predict_f(MANY, full_cov=True), right.predict_f(MANY, full_cov=True))
    data = MANY, np.zeros([300, 2])
    found = idm.predict_in_batches(model, *data[:1], Y=data[1], method="predict_log_density")
    np.testing.assert_allclose(found, right.predict_log_density(data), rtol=1e-6)


@pytest.mark.parametrize("few", [0, 256])
@pytest.mark.parametrize("make", [several, meters])
def test_gradients_by_rows(make: Any, few: int, monkeypatch: Any) -> None:
    """First and second derivatives of means and variances."""
    monkeypatch.setattr(posterior_of_chain, "_FEW", few)
    model, right = both(make)
    rows, weights = tf.constant(NEW), RNG.normal(size=[2, 7, 2])
    slopes = []
    for predict in (model.posterior().predict_f, right.predict_f):
        with tf.GradientTape() as outer:
            outer.watch(rows)
            with tf.GradientTape() as tape:
                tape.watch(rows)
                mean, variance = predict(rows)
                total = tf.reduce_sum(weights[0] * mean + weights[1] * variance)
            first = tape.gradient(total, rows)
            square = tf.reduce_sum(tf.square(first[:, :3]))
        slopes.append([first[:, :3], outer.gradient(square, rows)[:, :3]])
    np.testing.assert_allclose(slopes[0][0], slopes[1][0], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(slopes[0][1], slopes[1][1], rtol=1e-5, atol=1e-5)


def test_rows_at_a_time() -> None:
    """The default batch has more rows than windows, and few enough to fit."""
    model, _ = both(with_stations)
    assert model.rows_of_a_prediction == 2**14


def test_beyond_the_box() -> None:
    model, _ = both(with_stations)
    beyond = NEW + [0, 0, 20, 0]
    remedy = r"SplineFeatures\(lower, upper, ...\) or a greater margin of from_data"
    for call in (
        lambda: model.predict_f(beyond),
        lambda: idm.predict_in_batches(model, beyond, progress=False),
        lambda: StructuredSGPR(
            (X + [0, 0, 20, 0], Y), model.kernel, model.inducing_variable
        ).elbo(),
    ):
        with pytest.raises(ValueError, match=remedy):
            call()
    graph = tf.function(model.posterior().predict_f, autograph=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="wider one"):
        graph(tf.constant(beyond))


def finite(kernel: Any, features: Any) -> Any:
    is_finite = isinstance(kernel, idm.kernels.FiniteRank)
    return kernel if is_finite else idm.kernels.FiniteRank(kernel, features)


@pytest.mark.parametrize("make", [several, meters])
def test_functions(make: Any) -> None:
    model, right = both(make)
    if make is several:  # one of its terms leaves out a part of its kernel
        kernel, inducing_variable = make()
        blocks = zip(kernel.kernels, inducing_variable.inducing_variables, strict=True)
        kernel = gpflow.kernels.Sum([finite(*block) for block in blocks])
        model = StructuredSGPR((X, Y), kernel, inducing_variable, noise_variance=NOISE)
        right = gpflow.models.SGPR((X, Y), kernel, inducing_variable, noise_variance=NOISE)
    functions = idm.sample_functions(model, NUM_SAMPLES, seed=1)
    mean, cov = right.predict_f(NEW, full_cov=True)
    assert_moments(functions, NEW, mean, np.asarray(cov))
    values = functions(NEW[:2])
    for variable in model.kernel.trainable_variables:
        variable.assign(1.2 * variable)
    np.testing.assert_array_equal(functions(NEW[:2]), values)


def test_rows_are_added(tmp_path: Any) -> None:
    """A day comes in; sums are saved and loaded."""
    kernel, inducing_variable = several()
    parts = kernel, inducing_variable
    first = HOURS < 7
    model = StructuredSGPR((X[first], Y[first]), *parts, noise_variance=NOISE)
    sums = model.statistics + model.accumulate((X[~first], Y[~first]))
    sums.save(tmp_path / "sums.npz")
    loaded = type(sums).load(tmp_path / "sums.npz")
    right = StructuredSGPR((X, Y), *parts, noise_variance=NOISE)
    for statistics in (sums, loaded):
        again = StructuredSGPR(statistics, *parts, noise_variance=NOISE)
        np.testing.assert_allclose(again.elbo(), right.elbo(), rtol=1e-9)
        assert_same(again.predict_f(NEW), right.predict_f(NEW))
    fewer = StructuredSGPR(sums - model.statistics, *parts, noise_variance=NOISE)
    rest = StructuredSGPR((X[~first], Y[~first]), *parts, noise_variance=NOISE)
    np.testing.assert_allclose(fewer.elbo(), rest.elbo(), rtol=1e-8)


@pytest.mark.parametrize("make", [several, meters, with_stations])
def test_saved_for_serving(make: Any, tmp_path: Any) -> None:
    model, right = both(make)
    idm.save(model, tmp_path / "model", num_columns=4)
    loaded = tf.saved_model.load(tmp_path / "model")
    assert_same(loaded.predict_f(tf.constant(MANY)), right.predict_f(MANY))
    assert_same(idm.predict_in_batches(loaded, MANY, progress=False), right.predict_f(MANY))


def test_float32() -> None:
    """Sums and posteriors are in float64."""
    expected = both(with_waves)[1].predict_f(NEW)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=0.0)):
        kernel, inducing_variable = with_waves()
        rows = X.astype(np.float32), Y.astype(np.float32)
        model = StructuredSGPR(rows, kernel, inducing_variable, noise_variance=NOISE)
        assert isinstance(model._features.sums, ChainSums)
        found = model.predict_f(NEW.astype(np.float32))
        assert all(part.dtype == tf.float32 for part in found)
        assert_same(found, expected, rtol=2e-4)
        batches = idm.predict_in_batches(model, NEW.astype(np.float32), progress=False)
        assert_same(batches, expected, rtol=2e-4)
        idm.fit(model, steps=2, progress=False)


def test_noise_weights() -> None:
    """A row of weight 3 is three rows, up to the charge and the noise that is integrated out."""
    weights = RNG.integers(1, 4, size=180)
    kernel, inducing_variable = several()
    parts = {"noise_variance": NOISE, "charge": "trace"}
    model = StructuredSGPR(
        (X, Y), kernel, inducing_variable, noise_weights=weights.astype(float), **parts
    )
    repeated = [np.repeat(part, weights, axis=0) for part in (X, Y)]
    right = gpflow.models.SGPR(tuple(repeated), kernel, inducing_variable, noise_variance=NOISE)
    assert_same(model.predict_f(NEW), right.predict_f(NEW))


def test_fit() -> None:
    """All hyperparameters, with one pass over the rows."""
    model, right = both(with_stations)
    before = float(model.elbo())
    result = idm.fit(model, steps=8, progress=True)
    assert result.elbo > before and not model.feature_parameters
    right.likelihood = model.likelihood
    np.testing.assert_allclose(right.elbo(), model.elbo(), rtol=1e-8)
    assert_same(model.predict_f(NEW), right.predict_f(NEW))
    again = copy.deepcopy(model)
    np.testing.assert_allclose(again.elbo(), model.elbo(), rtol=1e-12)


def test_dense_q_of_many_is_refused(monkeypatch: Any) -> None:
    model, _ = both(with_stations)
    monkeypatch.setattr(dense, "MOST_DENSE", 10)
    for call in (model.compute_qu, model.to_svgp):
        with pytest.raises(ValueError, match="splines of time"):
            call()


def test_stock_models() -> None:
    """GPflow's SVGP has few such features."""
    kernel, inducing_variable = with_stations()
    svgp = gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(NOISE), inducing_variable, num_latent_gps=2
    )
    before = svgp.elbo((X, Y))
    model, _ = both(with_stations)
    q_mu, cov = model.compute_qu()
    root = model.to_svgp()
    assert root.elbo((X, Y)) > before
    np.testing.assert_allclose(root.elbo((X, Y)), model.elbo(), rtol=1e-8)
    assert q_mu.shape == (len(cov[0]), 2)


def test_missing_values() -> None:
    """Rows may be absent; a missing number is an error."""
    kernel, inducing_variable = with_stations()
    targets = Y.copy()
    targets[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite numbers: 3"):
        StructuredSGPR((X, targets), kernel, inducing_variable).elbo()
