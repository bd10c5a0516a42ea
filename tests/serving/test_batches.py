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

from interdomain.serving import _prediction_functions, predict_in_batches
from tests.conformance.helpers import assert_close
from tests.serving.served_models import (
    MODELS,
    Counting,
    points_svgp,
    rows,
    svgp,
    targets,
)
from tests.workers import UNCHECKED


@pytest.mark.parametrize("name", MODELS)
def test_every_model(name: str) -> None:
    """All methods as functions of tensors, from caches in variables."""
    model = MODELS[name]()
    X = rows(5, seed=7)
    mean, variance = model.predict_f(X)
    Y = targets(X, mean.shape[1])
    expected = {
        "predict_f": (mean, variance),
        "predict_y": model.predict_y(X),
        "predict_log_density": model.predict_log_density((X, Y)),
    }
    functions, _ = _prediction_functions(model)
    rtol = 1e-9 if name == "SVGP-points" else 1e-12  # whose cache is an inverse
    for method, values in expected.items():
        given = (tf.constant(X), tf.constant(Y)) if "density" in method else tf.constant(X)
        assert_close(functions[method](given), values, rtol=rtol, message=method)


def test_posteriors() -> None:
    """One with a cache stays as it is, and one without is left without."""
    model, X = svgp(num_latent_gps=2), rows(7)
    before = model.predict_f(X)
    cached, uncached = model.posterior(), model.posterior("nocache")
    model.q_mu.assign(model.q_mu + 1.0)
    now = model.predict_f(X)
    for posterior, f in ((cached, before), (uncached, now)):
        assert_close(predict_in_batches(posterior, X, batch_size=3), f, rtol=1e-12)
    assert uncached.cache is None
    with pytest.raises(ValueError, match="method must be one that a StructuredPosterior has, fo"):
        predict_in_batches(cached, X, method="predict_y")


def test_one_trace() -> None:
    """Whether batches are full, or the last is smaller."""
    mean = Counting()
    model = points_svgp(mean_function=mean)
    for calls, num_rows in enumerate((1, 8, 10), start=1):
        predict_in_batches(model, rows(num_rows), batch_size=4)
        assert mean.traced == calls


class OwnMean(gpflow.models.SVGP):
    """A user's model with predictions of f of its own, which those of y follow."""

    def predict_f(self, Xnew: Any, full_cov: bool = False, full_output_cov: bool = False) -> Any:
        mean, variance = super().predict_f(Xnew, full_cov, full_output_cov)
        return mean + 1.0, variance


def test_methods_of_a_subclass_are_used() -> None:
    kernel, points = gpflow.kernels.Matern32(), rows(3)
    X = rows(5)
    model = OwnMean(kernel, gpflow.likelihoods.Gaussian(), points)
    for method in ("predict_f", "predict_y"):
        expected = getattr(model, method)(X)
        assert_close(predict_in_batches(model, X, method=method), expected, rtol=1e-9)


def test_a_likelihood_that_cannot_be_compiled() -> None:
    """GPflow's Softmax draws samples, for a number of rows that it has to know."""
    model = points_svgp(gpflow.likelihoods.Softmax(3), num_latent_gps=3)
    X = rows(7)
    mean, _ = predict_in_batches(model, X, method="predict_y", batch_size=3)
    assert_close(np.sum(mean, axis=1), np.ones(7), rtol=1e-12)
    np.testing.assert_allclose(mean, model.predict_y(X)[0], atol=0.25)


def test_rows_in_a_file(tmp_path: Path) -> None:
    model, X = points_svgp(num_latent_gps=2), rows(9)
    on_disk = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    on_disk[:] = X
    found = predict_in_batches(model, on_disk, batch_size=4)
    assert_close(found, model.predict_f(np.array(on_disk, float)), rtol=1e-9)


def test_rows_that_are_not_finite() -> None:
    X = rows(11)
    X[3, 1], X[8, 0], X[9, 0] = np.nan, np.inf, np.nan
    with pytest.raises(ValueError, match="X: 1 rows have NaN.*: 3 "):
        predict_in_batches(points_svgp(), X, batch_size=4)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"X": np.zeros(3)}, r"data: X has shape \(3,\); .* X\[:, None\]"),
    ({"model": 3}, "model must be a GPflow model or posterior, found 3"),
    ({"method": "predict"}, "method must be 'predict_f' or .*, found 'predict'"),
    ({"method": "predict_log_density"}, "Y must be the targets .*, found None"),
    (
        {"Y": np.zeros((2, 1)), "method": "predict_log_density"},
        "data: X has 3 rows and Y has 2",
    ),
]


def test_wrong_arguments() -> None:
    model = points_svgp()
    for changed, message in WRONG:
        given: dict[str, Any] = {"model": model, "X": np.zeros((3, 2))} | changed
        with pytest.raises(ValueError, match=message):
            predict_in_batches(given.pop("model"), given.pop("X"), **given)


PEAK = """
import gpflow, numpy as np, interdomain as idm
from benchmarks._lib import memory

kernel = idm.kernels.SphericalMatern52()
harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=6)
model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
X = np.random.default_rng(0).normal(size=(300_000, 2))
predict = idm.predict_in_batches
predict(model, X[:20_000], progress=False)
print(memory.peak_of_call(lambda: tuple(predict(model, X, progress=False))))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no high-water mark")
def test_memory_is_bounded() -> None:
    """One call for 300,000 rows and 49 features takes 490 MB; their covariances alone are 118."""
    process = subprocess.run(
        [sys.executable, "-c", UNCHECKED + PEAK], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert int(process.stdout.splitlines()[-1]) < 80e6
