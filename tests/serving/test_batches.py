"""predict_in_batches: against one call of the model for all rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.serving import predict_in_batches
from interdomain.serving.batches import _default_batch_size
from tests.conformance.helpers import assert_close
from tests.serving.served_models import (
    MODELS,
    QUICK,
    Branching,
    Counting,
    points_svgp,
    rows,
    svgp,
    targets,
    targets_of,
)
from tests.tiers import in_tiers
from tests.workers import UNCHECKED


@pytest.mark.parametrize("name", in_tiers(MODELS, quick=QUICK))
def test_every_model(name: str) -> None:
    """All methods, with an odd last batch."""
    model = MODELS[name]()
    X = rows(11, seed=7)
    mean, variance = model.predict_f(X)
    Y = targets_of(name, X, mean.shape[1])
    expected = {
        "predict_f": (mean, variance),
        "predict_f_mean": mean,
        "predict_y": model.predict_y(X),
        "predict_log_density": model.predict_log_density((X, Y)),
    }
    # GPflow's cached posteriors of points multiply by an inverse.
    rtol = 1e-9 if name == "SVGP-points" else 1e-12
    for method, values in expected.items():
        given: dict[str, Any] = {"Y": Y} if method == "predict_log_density" else {}
        found = predict_in_batches(model, X, method=method, batch_size=4, **given)
        assert all(isinstance(part, np.ndarray) for part in tf.nest.flatten(found))
        assert isinstance(found, tuple) == isinstance(values, tuple)
        assert_close(found, values, rtol=rtol, message=method)


@pytest.mark.parametrize("cache", ["tensor", "variable", "nocache"])
def test_posteriors(cache: str) -> None:
    model = svgp(num_latent_gps=2)
    posterior = model.posterior(cache)
    X = rows(7)
    found = predict_in_batches(posterior, X, batch_size=3)
    assert_close(found, model.predict_f(X), rtol=1e-12)
    assert (posterior.cache is None) == (cache == "nocache")
    with_likelihood: dict[str, Any] = {"likelihood": model.likelihood, "batch_size": 3}
    found = predict_in_batches(posterior, X, method="predict_y", **with_likelihood)
    assert_close(found, model.predict_y(X), rtol=1e-12)
    with pytest.raises(ValueError, match="method must be one that a StructuredPosterior has with"):
        predict_in_batches(posterior, X, method="predict_y")


def test_a_cached_posterior_stays_as_it_is() -> None:
    model = svgp()
    posterior, X = model.posterior(), rows(5)
    before = posterior.predict_f(X)
    moved_later = model.q_mu + 1.0
    model.q_mu.assign(moved_later)
    assert_close(predict_in_batches(posterior, X), before, rtol=1e-12)
    assert_close(predict_in_batches(model, X), model.predict_f(X), rtol=1e-12)


@pytest.mark.parametrize("num_rows", [1, 6, 8, 10])
def test_one_trace(num_rows: int) -> None:
    """Whether batches are full, or the last is smaller."""
    mean = Counting()
    model = svgp(mean_function=mean)
    predict_in_batches(model, rows(num_rows), batch_size=4)
    assert mean.traced == 1


def test_code_of_a_user_that_needs_autograph() -> None:
    model = svgp(Branching(0.2))
    plain = svgp(gpflow.likelihoods.Gaussian(0.2))
    X = rows(5)
    mean, variance = plain.predict_y(X)
    found = predict_in_batches(model, X, method="predict_y", batch_size=2)
    assert_close(found, (mean, 2.0 * variance), rtol=1e-12)


def test_a_likelihood_that_cannot_be_compiled() -> None:
    """GPflow's Softmax draws samples, for a number of rows that it has to know."""
    model = points_svgp(num_latent_gps=3)
    model.likelihood = gpflow.likelihoods.Softmax(3)
    X = rows(7)
    mean, _ = predict_in_batches(model, X, method="predict_y", batch_size=3)
    assert_close(np.sum(mean, axis=1), np.ones(7), rtol=1e-12)
    np.testing.assert_allclose(mean, model.predict_y(X)[0], atol=0.25)


@pytest.mark.parametrize("method", ["predict_f", "predict_f_mean", "predict_log_density"])
@pytest.mark.parametrize("form", ["array", "dataset"])
def test_no_rows(method: str, form: str) -> None:
    model = svgp(num_latent_gps=2)
    X, Y = rows(0), np.zeros((0, 2))
    is_density = method == "predict_log_density"
    given: dict[str, Any] = {"Y": Y} if is_density and form == "array" else {}
    if form == "dataset":
        X = tf.data.Dataset.from_tensor_slices((X, Y) if is_density else X).batch(3)
    found = predict_in_batches(model, X, method=method, **given)
    for part in tf.nest.flatten(found):
        assert part.shape == ((0,) if is_density else (0, 2)) and part.dtype == np.float64


def test_forms_of_rows(tmp_path: Path) -> None:
    model = svgp()
    X = rows(11)
    Y = targets(X)
    on_disk = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    on_disk[:] = X
    sets = tf.data.Dataset
    expected = model.predict_f(X)
    forms: dict[str, Any] = {
        "tensor": tf.constant(X),
        "list": X.tolist(),
        "dataset": sets.from_tensor_slices(X).batch(5),
        "pairs": sets.from_tensor_slices((X, Y)).batch(3),
    }
    for name, given in forms.items():
        found = predict_in_batches(model, given, batch_size=4)
        assert_close(found, expected, rtol=1e-12, message=name)
    found = predict_in_batches(model, on_disk, batch_size=4)
    assert_close(found, model.predict_f(X.astype(np.float32)), rtol=1e-12)
    found = predict_in_batches(model, forms["pairs"], method="predict_log_density", batch_size=4)
    assert_close(found, model.predict_log_density((X, Y)), rtol=1e-12)
    whole = np.arange(-4, 4).reshape(4, 2)
    found = predict_in_batches(model, whole)
    assert_close(found, model.predict_f(whole.astype(float)), rtol=1e-12)


def test_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model = svgp()
        X = rows(7)
        found = predict_in_batches(model, X, batch_size=3)
        expected = model.predict_f(X)
    assert found[0].dtype == found[1].dtype == np.float32
    assert_close(found, expected, rtol=1e-5)


def test_given_arrays(tmp_path: Path) -> None:
    model = svgp(num_latent_gps=2)
    X = rows(9)
    out = tuple(np.memmap(tmp_path / name, np.float32, "w+", shape=(9, 2)) for name in "mv")
    found = predict_in_batches(model, X, batch_size=4, out=out)
    assert found[0] is out[0] and found[1] is out[1]
    assert_close(found, model.predict_f(X), rtol=1e-6)
    dataset = tf.data.Dataset.from_tensor_slices(X).batch(4)
    mean = np.zeros((9, 2))
    assert predict_in_batches(model, dataset, method="predict_f_mean", out=mean) is mean
    assert_close(mean, model.predict_f(X)[0], rtol=1e-12)


def test_rows_that_are_not_finite() -> None:
    model = svgp()
    X = rows(11)
    expected = [np.array(part) for part in model.predict_f(X)]
    X[3, 1], X[8, 0], X[9, 0] = np.nan, np.inf, np.nan
    for given in (X, tf.data.Dataset.from_tensor_slices(X).batch(5)):
        with pytest.raises(
            idm.streaming.InvalidRowsError, match="X: 3 rows have NaN.*: 3, 8, 9 "
        ) as e:
            predict_in_batches(model, given, batch_size=4)
        assert list(e.value.rows) == [3, 8, 9]
        found = predict_in_batches(model, given, batch_size=2, on_invalid="nan")
        for part, values in zip(found, expected, strict=True):
            assert np.all(np.isnan(part[[3, 8, 9]]))
            keep = [0, 1, 2, 4, 5, 6, 7, 10]
            assert_close(part[keep], values[keep], rtol=1e-12)


def test_rows_that_are_no_inputs_of_the_kernel() -> None:
    kernel = idm.kernels.GlobeMatern52()
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=3)
    model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
    X = np.array([[10.0, 20.0], [95.0, 20.0]])
    with pytest.raises(ValueError, match="^X"):
        predict_in_batches(model, X)


class Plain(tf.Module):
    """What somebody saved without this library."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        spec = tf.TensorSpec([None, 2], tf.float64)
        self.predict_f = tf.function(model.predict_f, input_signature=[spec], autograph=False)


def test_saved_models_of_others(tmp_path: Path) -> None:
    model = svgp(num_latent_gps=2)
    tf.saved_model.save(Plain(model), str(tmp_path / "plain"))
    loaded = tf.saved_model.load(str(tmp_path / "plain"))
    X = rows(7)
    assert_close(predict_in_batches(loaded, X, batch_size=3), model.predict_f(X), rtol=1e-12)
    with pytest.raises(ValueError, match="X must have 2 columns, .*, found 3; pass the columns"):
        predict_in_batches(loaded, np.zeros((4, 3)))
    with pytest.raises(ValueError, match="model must be .* with a function 'predict_y', found"):
        predict_in_batches(loaded, X, method="predict_y")


def test_batches_of_bounded_memory() -> None:
    assert _default_batch_size(49, 1) == 8192
    assert _default_batch_size(660, 5) == 635
    assert _default_batch_size(10**7, 1) == 64
    assert 64 <= _default_batch_size(None, 1) <= 8192


def test_progress_is_on_stderr_after_a_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = svgp()
    predict_in_batches(model, rows(10), batch_size=2)
    monkeypatch.setattr("interdomain._progress._DELAY", 0.0)
    assert capsys.readouterr() == ("", "")
    predict_in_batches(model, rows(10), batch_size=2)
    shown = capsys.readouterr()
    assert shown.out == "" and "predict_f: 100%" in shown.err
    predict_in_batches(model, rows(10), batch_size=2, progress=False)
    assert capsys.readouterr() == ("", "")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "columns": ({"X": np.zeros((3, 4))}, "X must have 2 columns, as many as the SVGP was made for"),
    "rank": ({"X": np.zeros(3)}, r"X must be a matrix .*, found shape \(3,\); .* X\[:, None\]"),
    "text": ({"X": np.array([["a", "b"]])}, "X must be real numbers, found entries of type"),
    "none": ({"X": None}, "X must be a matrix"),
    "endless": (
        {"X": tf.data.Dataset.from_tensor_slices(np.zeros((3, 2))).batch(2).repeat()},
        "this Dataset never ends; take away",
    ),
    "not-batched": (
        {"X": tf.data.Dataset.from_tensor_slices(np.zeros((3, 2)))},
        r"X: the Dataset's elements must be batches X \[B, D\]",
    ),
    "no-pairs": (
        {
            "X": tf.data.Dataset.from_tensor_slices(np.zeros((3, 2))).batch(2),
            "method": "predict_log_density",
        },
        r"must be pairs \(X \[B, D\], Y \[B, P\]\)",
    ),
    "model": ({"model": 3}, "model must be a GPflow model or posterior, or .*, found 3"),
    "method": ({"method": "predict"}, "method must be 'predict_f' or .*, found 'predict'"),
    "no-targets": ({"method": "predict_log_density"}, r"Y must be the targets .*, found None"),
    "targets": ({"Y": np.zeros((3, 1))}, "Y must be None, found .*predict_log_density"),
    "rows-of-targets": (
        {"Y": np.zeros((2, 1)), "method": "predict_log_density"},
        "Y must have as many rows as X, 3, found 2",
    ),
    "batch-size": ({"batch_size": 0}, "batch_size must be an integer of 1 or more, found 0"),
    "batch-size-float": ({"batch_size": 2.5}, "batch_size must be an integer of 1 or more"),
    "on-invalid": ({"on_invalid": "skip"}, "on_invalid must be 'raise' or 'nan', found 'skip'"),
    "progress": ({"progress": 1}, "progress must be True or False, found 1"),
    "likelihood": (
        {"likelihood": gpflow.likelihoods.Gaussian()},
        "likelihood must be None for a SVGP, which has its own, found Gaussian",
    ),
    "out": ({"out": np.zeros((3, 1))}, r"out must be a pair of arrays \(mean, variance\) to write"),
    "out-shape": (
        {"out": (np.zeros((3, 1)), np.zeros((3, 2)))},
        r"out must be .* of shape \(3, 1\), found shape \(3, 2\)",
    ),
    "out-type": ({"out": (np.zeros((3, 1), int),) * 2}, "out must be .* floating-point numbers"),
}


@pytest.fixture(scope="module")
def model() -> gpflow.models.SVGP:
    return svgp()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str, model: gpflow.models.SVGP) -> None:
    changed, message = WRONG[name]
    given: dict[str, Any] = {"model": model, "X": np.zeros((3, 2))} | changed
    with pytest.raises(ValueError, match=message):
        predict_in_batches(given.pop("model"), given.pop("X"), **given)


@pytest.mark.parametrize("size", [8, 10])
def test_out_of_another_length_than_the_dataset(size: int, model: gpflow.models.SVGP) -> None:
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros((9, 2))).batch(3)
    with pytest.raises(
        ValueError, match=f"out must have as many rows as the Dataset, found {size}"
    ):
        predict_in_batches(model, dataset, out=(np.zeros((size, 1)), np.zeros((size, 1))))


PEAK = """
import gpflow, numpy as np, interdomain as idm
from benchmarks._lib import memory

kernel = idm.kernels.SphericalMatern52()
harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=6)
model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
X = np.random.default_rng(0).normal(size=(300_000, 2))
predict = idm.serving.predict_in_batches
predict(model, X[:20_000], progress=False)
print(memory.peak_of_call(lambda: tuple(predict(model, X, progress=False))))
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no high-water mark")
def test_memory_is_bounded() -> None:
    """One call for 300,000 rows and 49 features takes 490 MB; their covariances alone are 118."""
    process = subprocess.run(
        [sys.executable, "-c", UNCHECKED + PEAK], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert int(process.stdout.splitlines()[-1]) < 80e6
