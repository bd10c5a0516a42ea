"""What save writes and load reads: the values of the model, and nothing in between."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.serving import load, predict_in_batches, save
from interdomain.serving.formats import FILE, check_free, write_folder
from interdomain.serving.predictors import predictor_of
from interdomain.serving.saving import _num_columns
from tests.conformance.cases import ONE_OF_EACH_KIND, Case
from tests.conformance.helpers import assert_close, make_inputs, make_svgp
from tests.serving.served_models import (
    MODELS,
    Branching,
    of_data,
    points_svgp,
    rows,
    targets,
    targets_of,
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> tuple[idm.models.StructuredSGPR, Path]:
    """A model of two outputs, and where it was saved."""
    folder = tmp_path_factory.mktemp("served") / "model"
    model = MODELS["StructuredSGPR"]()
    save(model, folder)
    return model, folder


@pytest.fixture(scope="module")
def loaded(served: Any) -> idm.serving.LoadedModel:
    return load(str(served[1]))


def assert_serves(loaded: Any, model: Any, X: np.ndarray, Y: np.ndarray, rtol: float) -> None:
    """All methods of the loaded model, for any number of rows."""
    for num_rows in (1, len(X)):
        some = X[:num_rows]
        expected = model.predict_f(some)
        assert_close(loaded.predict_f(some), expected, rtol=rtol)
        assert_close(loaded.predict_f_mean(some), expected[0], rtol=rtol)
        assert_close(loaded.predict_y(some), model.predict_y(some), rtol=rtol)
    joint = model.predict_f(X, full_cov=True)
    assert_close(loaded.predict_f(X, full_cov=True), joint, rtol=rtol)
    density = model.predict_log_density((X, Y))
    assert_close(loaded.predict_log_density((X, Y)), density, rtol=rtol)
    found = predict_in_batches(loaded, X, Y=Y, method="predict_log_density", batch_size=4)
    assert_close(found, density, rtol=rtol)


def test_all_methods_and_signatures(served: Any, loaded: Any) -> None:
    X = rows(6, seed=9)
    Y = targets(X, 2)
    assert_serves(loaded, served[0], X, Y, rtol=1e-12)
    signatures = loaded._module.signatures
    mean, variance = loaded.predict_f(X)
    found = signatures["serving_default"](Xnew=tf.constant(X))
    assert_close(found, {"mean": mean, "variance": variance}, rtol=1e-12)
    found = signatures["predict_log_density"](Xnew=tf.constant(X), Y=tf.constant(Y))
    assert_close(found, {"log_density": loaded.predict_log_density((X, Y))}, rtol=1e-12)


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


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=lambda case: case.kind)
def test_the_cache_of_every_kind_of_operator_is_kept_in_variables(case: Case) -> None:
    """Which are what a SavedModel writes to its files; q is not needed any more."""
    model, X = make_svgp(case, num_latent_gps=2, whiten=False), make_inputs(case, 4)
    expected = model.predict_f(X)
    cache = [tuple(value.shape) for value in model.posterior().cache]
    predictor = predictor_of(model, keep=True)
    traced = predictor.traced("predict_f", tf.TensorSpec([None, case.input_dim], tf.float64))
    graph = traced.concrete_function().graph
    assert set(cache) <= {tuple(variable.shape) for variable in graph.variables}
    model.q_mu.assign(0.0 * model.q_mu)
    assert_close(traced(tf.constant(X)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["SVGP-MultiClass", "GPR"])
def test_models_of_integer_targets_and_of_rows(name: str, tmp_path: Path) -> None:
    model = MODELS[name]()
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    X = rows(6, seed=9)
    num_outputs = model.predict_f(X)[0].shape[1]
    assert (loaded.num_columns, loaded.num_outputs) == (2, num_outputs)
    assert_serves(loaded, model, X, targets_of(name, X, num_outputs), rtol=1e-9)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[gpflow.models.SVGP, Path]:
    """A posterior with a cache, whose model is trained further before it is saved."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    model = points_svgp()
    posterior = model.posterior()
    model.q_mu.assign(model.q_mu + 1.0)
    save(posterior, folder)
    return model, folder


def test_posteriors_alone(saved: Any, tmp_path: Path) -> None:
    """With a cache it is saved as it is; without a likelihood it predicts f alone."""
    (model, folder), X = saved, rows(4)
    cached = load(folder)
    assert_close(cached.predict_f(X), points_svgp().posterior().predict_f(X), rtol=1e-12)
    for call in (lambda: cached.predict_y(X), lambda: cached.predict_log_density((X, X[:, :1]))):
        with pytest.raises(ValueError, match="has no predict_.*; save the posterior with likelih"):
            call()
    with pytest.raises(ValueError, match="without a likelihood, found 'predict_y'; save it with"):
        predict_in_batches(cached, X, method="predict_y")
    with pytest.raises(ValueError, match="likelihood must be None for what was loaded, found Gau"):
        predict_in_batches(cached, X, likelihood=model.likelihood)
    # With code of a user that needs AutoGraph.
    uncached = model.posterior(None)
    save(uncached, tmp_path / "uncached", likelihood=Branching(0.2))
    assert uncached.cache is None
    mean, variance = model.predict_y(X)
    found = load(tmp_path / "uncached").predict_y(X)
    assert_close(found, (mean, 2.0 * variance), rtol=1e-9)


def test_float32(tmp_path: Path) -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model, X = points_svgp(), rows(5)
        save(model.posterior(), tmp_path / "model")
        expected = model.predict_f(X.astype(np.float32))
    loaded = load(tmp_path / "model")  # whatever the float is now
    assert loaded.metadata.dtype == "float32"
    assert loaded.predict_f(X)[0].dtype == tf.float32
    assert_close(loaded.predict_f(X), expected, rtol=1e-5)
    assert_close(predict_in_batches(loaded, X), expected, rtol=1e-5)


def test_inputs_of_a_loaded_model(loaded: Any) -> None:
    X = rows(4)
    expected = loaded.predict_f(X)
    assert_close(loaded.predict_f(X.tolist()), expected, rtol=1e-12)
    compiled = tf.function(loaded.predict_f, autograph=False)
    assert_close(compiled(tf.constant(X)), expected, rtol=1e-12)
    whole = np.arange(4).reshape(2, 2)
    assert_close(loaded.predict_f(whole), loaded.predict_f(whole.astype(float)), rtol=1e-12)
    assert loaded.predict_f(X[:0])[0].shape == (0, 2)
    for wrong in (X[0], X[:, :1], np.zeros((4, 3))):
        with pytest.raises(ValueError, match=r"Xnew must be \[N, 2\], found shape .*; pass the co"):
            loaded.predict_f(wrong)
    with pytest.raises(ValueError, match="full_cov must be True or False, found 1"):
        loaded.predict_f(X, 1)
    assert "StructuredSGPR, SphericalMatern52: 2 columns, 2 outputs, predict_f" in repr(loaded)


def test_gradients_of_a_loaded_model(served: Any, loaded: Any) -> None:
    """With respect to its inputs, as optimisers of a design need them."""
    gradients = []
    for predict in (served[0].predict_f, loaded.predict_f):
        X = tf.Variable(rows(3))
        with tf.GradientTape() as tape:
            mean, variance = predict(tf.convert_to_tensor(X))
            total = tf.reduce_sum(mean) + tf.reduce_sum(variance)
        gradients.append(tape.gradient(total, X))
    assert_close(gradients[1], gradients[0], rtol=1e-10)


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


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_nothing_is_overwritten_by_accident(saved: Any, tmp_path: Path) -> None:
    posterior = points_svgp(num_latent_gps=2).posterior()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("mine")
    shutil.copytree(saved[1], tmp_path / "model")
    with pytest.raises(ValueError, match="path must be a new folder, found the file .*file; pass"):
        save(posterior, tmp_path / "file", overwrite=True)
    with pytest.raises(ValueError, match="found .*folder with files that are no saved model; pass"):
        save(posterior, tmp_path / "folder", overwrite=True)
    assert names_in(tmp_path / "folder") == {"file"}
    with pytest.raises(ValueError, match="found a saved model in .*; pass another, or overwrite=T"):
        save(posterior, tmp_path / "model")
    assert load(tmp_path / "model").num_outputs == 1
    save(posterior, tmp_path / "model", overwrite=True)
    assert load(tmp_path / "model").num_outputs == 2
    assert names_in(tmp_path) == {"file", "folder", "model"}
    (tmp_path / "empty").mkdir()
    check_free(tmp_path / "empty", overwrite=False)


def test_an_interrupted_write_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    write_folder(model, lambda folder: folder.mkdir())
    (model / "old").write_text("")

    def interrupted(folder: Path) -> None:
        written(folder)
        raise KeyboardInterrupt

    def written(folder: Path) -> None:
        folder.mkdir()
        (folder / "new").write_text("")

    rename = Path.rename

    def second_fails(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise KeyboardInterrupt
        return rename(self, target)

    for write, renamed in ((interrupted, rename), (written, second_fails)):
        monkeypatch.setattr(Path, "rename", renamed)
        for target in (model, tmp_path / "other"):
            with pytest.raises(KeyboardInterrupt):
                write_folder(target, write)
            assert names_in(tmp_path) == {"model"} and names_in(model) == {"old"}
    monkeypatch.undo()
    write_folder(model, written)
    assert names_in(tmp_path) == {"model"} and names_in(model) == {"new"}


def test_wrong_arguments_of_save(tmp_path: Path) -> None:
    model = points_svgp()
    free = tmp_path / "free"
    kernel = gpflow.kernels.Matern32(active_dims=[0])
    features = idm.inducing_variables.IntervalFourierFeatures(-2.0, 2.0, 3)
    selecting = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), features)
    wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
        (3, free, {}, "model must be a GPflow model or posterior, found int"),
        (model, 3, {}, "path must be the path of a folder, found 3"),
        (model, free, {"overwrite": 1}, "overwrite must be True or False, found 1"),
        (model, free, {"num_columns": 3}, "num_columns must be 2, those of the SVGP, found 3"),
        (model, free, {"num_columns": 0}, "num_columns must be an integer of 1 or more, found 0"),
        (model, free, {"likelihood": model.likelihood}, "likelihood must be None for a SVGP, whi"),
        (model.posterior(), free, {"likelihood": 3}, "likelihood must be a GPflow likelihood, fo"),
        (selecting, free, {}, r"num_columns must be the number of .*, found None; pass X.shape\["),
        (of_data(gpflow.models.CGLB), free, {}, "model: predictions of a CGLB cannot be compiled"),
    ]
    for given, path, options, message in wrong:
        with pytest.raises(ValueError, match=message):
            save(given, path, **options)
    # It draws samples, for a number of rows.
    softmax = points_svgp(gpflow.likelihoods.Softmax(3), num_latent_gps=3)
    with pytest.raises(
        ValueError, match="likelihood: a Softmax cannot be compiled for any .* alone"
    ):
        save(softmax, free)
    assert not list(tmp_path.iterdir())
    assert _num_columns(predictor_of(selecting), 3) == 3


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path must be the path of a folder, found None"):
        load(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="path must be the folder of a saved model, found .*none"):
        load(tmp_path / "none")
    with pytest.raises(ValueError, match=f"without {FILE}; pass one that holds one"):
        load(tmp_path)
    module = tf.Module()
    tf.saved_model.save(module, str(tmp_path / "other"))
    with pytest.raises(ValueError, match="read it with tf.saved_model.load"):
        load(tmp_path / "other")


def test_damaged_folders(saved: Any, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(saved[1], folder)
    text = (folder / FILE).read_text()
    for changed, message in (
        ("{", "is damaged: .* is no JSON"),
        ("[]", "is damaged: .* names no format"),
        ({"format": 99}, "is of format 99, and this version of interdomain reads format 1"),
        ({"functions": None}, "is damaged"),
        ({"unknown": 1}, "is damaged: .*unknown"),
        ({"functions": ["predict_f", "g"]}, "names functions that are not there, g"),
    ):
        known = changed if isinstance(changed, str) else json.dumps(json.loads(text) | changed)
        (folder / FILE).write_text(known)
        with pytest.raises(ValueError, match=message):
            load(folder)
    (folder / FILE).write_text(text)
    (file,) = (folder / "variables").glob("*.data-*")
    os.truncate(file, file.stat().st_size // 2)
    with pytest.raises(ValueError, match="path: .* is damaged: .*; save the model again"):
        load(folder)
