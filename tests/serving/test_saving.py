"""save: what TensorFlow loads predicts as the model does."""

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
from interdomain.serving import predict_in_batches, save
from tests.conformance.helpers import assert_close
from tests.serving.served_models import MODELS, points_svgp, rows, targets


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
    """What is in the files: the cache and the parameters that predictions need."""
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
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARY, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
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
