"""Predictions in batches, against one call of the model for all rows, and of saved models."""

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.serving import predict_in_batches, save
from tests.conformance.helpers import assert_close
from tests.serving.served_models import MODELS, Counting, points_svgp, rows, svgp, targets
from tests.workers import UNCHECKED

compiled_predictions = pytest.mark.usefixtures("compiled_predictions")


@compiled_predictions
@pytest.mark.parametrize("name", MODELS)
def test_every_model(name: str) -> None:
    model = MODELS[name]()
    X = rows(5, seed=7)
    mean, variance = model.predict_f(X)
    Y = targets(X, mean.shape[1])
    expected = {"predict_f": (mean, variance), "predict_y": model.predict_y(X)}
    expected["predict_log_density"] = model.predict_log_density((X, Y))
    rtol = 1e-9 if name == "SVGP-points" else 1e-12  # whose cache is an inverse
    for method, values in expected.items():
        given = {"Y": Y} if "density" in method else {}
        found = predict_in_batches(model, X, method=method, **given)
        assert_close(found, values, rtol=rtol, message=method)


@compiled_predictions
def test_posteriors() -> None:
    """One with a cache stays as it is, and one without is left without."""
    model, X = svgp(), rows(7)
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
    """No trace for three batches, and one trace for more, whether batches are full or the last is
    smaller; by all calls together."""
    traces: list[None] = []
    model = points_svgp(mean_function=Counting(functools.partial(traces.append, None)))
    for num_rows, number in ((1, 0), (8, 0), (1, 1), (8, 1), (10, 1)):
        found = predict_in_batches(model, rows(num_rows), batch_size=4)
        assert_close(found, model.predict_f(rows(num_rows)), rtol=1e-9)
        assert len(traces) == number


class OwnMean(gpflow.models.SVGP):
    """A user's model with predictions of f of its own, which those of y follow."""

    def predict_f(self, Xnew: Any, full_cov: bool = False, full_output_cov: bool = False) -> Any:
        mean, variance = super().predict_f(Xnew, full_cov, full_output_cov)
        return mean + 1.0, variance


def test_methods_of_a_subclass_are_used() -> None:
    X, noise = rows(5), gpflow.likelihoods.Gaussian()
    model = OwnMean(gpflow.kernels.Matern32(), noise, rows(3))
    for method in ("predict_f", "predict_y"):
        expected = getattr(model, method)(X)
        assert_close(predict_in_batches(model, X, method=method), expected, rtol=1e-9)


@compiled_predictions
def test_a_likelihood_that_cannot_be_compiled() -> None:
    """GPflow's Softmax draws samples, for a number of rows that it has to know."""
    model = points_svgp(gpflow.likelihoods.Softmax(3), num_latent_gps=3)
    X = rows(7)
    mean, _ = predict_in_batches(model, X, method="predict_y", batch_size=3)
    assert_close(np.sum(mean, axis=1), np.ones(7), rtol=1e-12)
    np.testing.assert_allclose(mean, model.predict_y(X)[0], atol=0.25)


@compiled_predictions
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


@compiled_predictions
def test_rows_beyond_the_box() -> None:
    """The error is that of ``predict_f``, not one of TensorFlow's graphs."""
    kernel, X = gpflow.kernels.Matern32(), rows(30)[:, :1]
    splines = idm.inducing_variables.SplineFeatures([-5.0], [5.0], 12, 3)
    model = idm.models.StructuredSGPR((X, X), kernel, splines, progress=False)
    for predict in (model.predict_f, functools.partial(predict_in_batches, model)):
        with pytest.raises(ValueError, match="^Xnew: 1 rows are outside of the box of the splines"):
            predict(np.array([[0.0], [7.0]]))


X = np.zeros((3, 2))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"X": np.zeros(3)}, r"data: X has shape \(3,\); .* X\[:, None\]"),
    ({"model": X, "X": points_svgp()}, "model must come before X, found a SVGP as X"),
    ({"X": np.zeros((3, 0))}, "data: X has no columns"),
    ({"model": 3}, "model must be a GPflow model or posterior, found 3"),
    ({"method": "predict"}, "method must be 'predict_f' or .*, found 'predict'"),
    ({"method": "predict_log_density"}, "Y must be the targets .*, found None"),
    ({"Y": X[:2], "method": "predict_log_density"}, "data: X has 3 rows and Y has 2"),
]


def test_wrong_arguments() -> None:
    model = points_svgp()
    for changed, message in WRONG:
        given: dict[str, Any] = {"model": model, "X": X} | changed
        with pytest.raises(ValueError, match=message):
            predict_in_batches(given.pop("model"), given.pop("X"), **given)


PEAK = """
import gpflow, numpy as np, interdomain as idm
from benchmarks._lib import memory

kernel = idm.kernels.SphericalMatern52()
harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=6)
model = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), harmonics)
X = np.random.default_rng(0).normal(size=(150_000, 2))
predict = idm.predict_in_batches
predict(model, X[:10_000], progress=False)
print(memory.peak_of_call(lambda: tuple(predict(model, X, progress=False))))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="no high-water mark")
def test_memory_is_bounded() -> None:
    """One call for 150,000 rows and 49 features takes 245 MB; their covariances alone are 59."""
    arguments = [sys.executable, "-c", UNCHECKED + PEAK]
    process = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout.splitlines()[-1]) < 50e6


# save: what TensorFlow loads predicts as the model does.


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[idm.models.StructuredSGPR, Path]:
    """A model of two outputs, and where it was saved."""
    folder = tmp_path_factory.mktemp("served") / "model"
    model = MODELS["StructuredSGPR"]()
    save(model, folder)
    return model, folder


def test_methods_and_signatures(served: Any) -> None:
    (model, folder), X = served, rows(6, seed=9)
    loaded = tf.saved_model.load(str(folder))
    expected = model.predict_f(X)
    Y = targets(X, expected[0].shape[1])
    for num_rows in (1, 6):
        assert_close(loaded.predict_f(X[:num_rows]), model.predict_f(X[:num_rows]), rtol=1e-9)
    assert_close(loaded.predict_y(X), model.predict_y(X), rtol=1e-9)
    density = model.predict_log_density((X, Y))
    assert_close(loaded.predict_log_density((X, Y)), density, rtol=1e-9)
    given: dict[str, Any] = {"Y": Y, "method": "predict_log_density"}
    assert_close(predict_in_batches(loaded, X, batch_size=4, **given), density, rtol=1e-9)
    found = loaded.signatures["serving_default"](Xnew=tf.constant(X))
    assert_close(found, dict(zip(("mean", "variance"), expected, strict=True)), rtol=1e-9)
    found = loaded.signatures["predict_log_density"](Xnew=tf.constant(X), Y=tf.constant(Y))
    assert_close(found, {"log_density": density}, rtol=1e-9)


def test_no_data_and_no_variational_parameters(served: Any) -> None:
    """The files contain the cache and the parameters that predictions need."""
    model, folder = served
    found = tf.train.load_checkpoint(str(folder / "variables" / "variables"))
    shapes = found.get_variable_to_shape_map()
    cache = sorted(tuple(value.shape) for value in model.posterior().cache)
    kept = [tuple(shape) for name, shape in shapes.items() if "variables_used" in name]
    assert sorted(shape for shape in kept if len(shape) > 1) == cache
    X = model.draw(20)[0]
    assert (folder / "saved_model.pb").read_bytes().find(X.tobytes()[:32]) < 0


def test_posteriors_alone(tmp_path: Path) -> None:
    """With a cache it is saved as it is; it predicts f alone."""
    model, X = points_svgp(), rows(4)
    cached = model.posterior()
    model.q_mu.assign(model.q_mu + 1.0)
    save(cached, tmp_path / "cached")
    loaded = tf.saved_model.load(str(tmp_path / "cached"))
    assert_close(loaded.predict_f(X), points_svgp().posterior().predict_f(X), rtol=1e-12)
    assert not hasattr(loaded, "predict_y")


WITHOUT_LIBRARY = """
import sys
import numpy as np
import tensorflow as tf

folder, rows, means = sys.argv[1:]
X, mean = np.load(rows), np.load(means)
loaded = tf.saved_model.load(folder)
np.testing.assert_allclose(loaded.predict_f(X)[0], mean, rtol=1e-10)
np.testing.assert_allclose(loaded.predict_y(X)[0], mean, rtol=1e-10)
assert loaded.predict_log_density((X, mean)).shape == len(X)
served = loaded.signatures["serving_default"](Xnew=tf.constant(X))
np.testing.assert_allclose(served["mean"], mean, rtol=1e-10)
assert "gpflow" not in sys.modules and "interdomain" not in sys.modules
"""


@pytest.mark.slow
def test_without_this_library(served: Any, tmp_path: Path) -> None:
    """TensorFlow alone, in another process."""
    model, folder = served
    X = rows(6)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "mean.npy", model.predict_f(X)[0])
    arguments = [str(path) for path in (folder, tmp_path / "X.npy", tmp_path / "mean.npy")]
    arguments = [sys.executable, "-c", WITHOUT_LIBRARY, *arguments]
    process = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_number_of_columns_that_nothing_tells(tmp_path: Path) -> None:
    kernel = gpflow.kernels.Matern32(active_dims=[0])
    features = idm.inducing_variables.VariationalFourierFeatures(-2.0, 2.0, 3)
    selecting = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), features)
    with pytest.raises(ValueError, match=r"num_columns must be .*, found None; pass X.shape\["):
        save(selecting, tmp_path / "model")


def test_what_cannot_be_compiled_is_left_out(tmp_path: Path) -> None:
    """Softmax draws samples, for a number of rows."""
    model, X = points_svgp(gpflow.likelihoods.Softmax(3), num_latent_gps=3), rows(4)
    with pytest.warns(UserWarning, match="predict_log_density is left out"):
        save(model, tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    assert_close(loaded.predict_f(X), model.predict_f(X), rtol=1e-9)
    assert not hasattr(loaded, "predict_log_density")
