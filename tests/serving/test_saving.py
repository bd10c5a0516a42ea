"""What save writes and load reads: the values of the model, and nothing in between."""

from __future__ import annotations

import json
import os
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
from interdomain.serving.formats import FILE
from tests.conformance.cases import ONE_OF_EACH_KIND, Case
from tests.conformance.helpers import assert_close, make_data, make_inputs, make_svgp
from tests.serving.served_models import (
    MODELS,
    Branching,
    of_data,
    points_svgp,
    rows,
    svgp,
    targets_of,
)
from tests.tiers import in_tiers

CASES = {case.name: case for case in ONE_OF_EACH_KIND}


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


@pytest.mark.parametrize(
    "name", in_tiers(CASES, quick=[case.name for case in ONE_OF_EACH_KIND[:1]])
)
def test_every_kind_of_operator(name: str, tmp_path: Path) -> None:
    """With two outputs, and a q that is not whitened. That TensorFlow exports the covariances of
    each class is tested in tests/conformance/test_compilation.py."""
    case: Case = CASES[name]
    model = make_svgp(case, num_latent_gps=2, whiten=False)
    save(model, tmp_path / "model", num_columns=case.input_dim)
    loaded = load(tmp_path / "model")
    X = make_inputs(case, 6)
    _, Y = make_data(case, 2, num_data=6)
    assert_serves(loaded, model, X, Y, rtol=1e-12)
    assert_close(predict_in_batches(loaded, X, batch_size=4), model.predict_f(X), rtol=1e-12)


@pytest.mark.parametrize(
    "name",
    in_tiers(
        [name for name in MODELS if name not in ("CGLB", "SVGP", "SVGP-two-outputs")],
        quick=["SVGP-MultiClass", "StructuredSGPR"],
    ),
)
def test_every_model(name: str, tmp_path: Path) -> None:
    """An SVGP of two outputs with a Gaussian likelihood is in test_every_kind_of_operator."""
    model = MODELS[name]()
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    X = rows(6, seed=9)
    num_outputs = model.predict_f(X)[0].shape[1]
    assert (loaded.num_columns, loaded.num_outputs) == (2, num_outputs)
    Y = targets_of(name, X, num_outputs)
    # GPflow's cached posteriors of points multiply by an inverse.
    assert_serves(loaded, model, X, Y, rtol=1e-9 if name == "SVGP-points" else 1e-12)
    found = predict_in_batches(loaded, X, Y=Y, method="predict_log_density", batch_size=4)
    assert_close(found, loaded.predict_log_density((X, Y)), rtol=1e-12)


def test_posteriors_alone(tmp_path: Path) -> None:
    """With a cache it is saved as it is; without a likelihood it predicts f alone."""
    model = points_svgp()
    X = rows(4)
    posterior = model.posterior()
    before = posterior.predict_f(X)
    model.q_mu.assign(model.q_mu + 1.0)
    save(posterior, tmp_path / "cached")
    cached = load(tmp_path / "cached")
    assert_close(cached.predict_f(X), before, rtol=1e-12)
    for call in (lambda: cached.predict_y(X), lambda: cached.predict_log_density((X, X[:, :1]))):
        with pytest.raises(ValueError, match="has no predict_.*; save the posterior with likelih"):
            call()
    with pytest.raises(ValueError, match="without a likelihood, found 'predict_y'; save it with"):
        predict_in_batches(cached, X, method="predict_y")
    with pytest.raises(ValueError, match="likelihood must be None for what was loaded, found Gau"):
        predict_in_batches(cached, X, likelihood=model.likelihood)
    uncached = model.posterior(None)
    save(uncached, tmp_path / "uncached", likelihood=model.likelihood)
    assert uncached.cache is None
    loaded = load(tmp_path / "uncached")
    assert_close(loaded.predict_y(X), model.predict_y(X), rtol=1e-12)


def test_no_data_and_no_variational_parameters(tmp_path: Path) -> None:
    """What is in the files: the cache and the parameters that predictions need."""
    model = of_data(idm.models.StructuredSGPR, 2)
    save(model, tmp_path / "model")
    found = tf.train.load_checkpoint(str(tmp_path / "model" / "variables" / "variables"))
    shapes = found.get_variable_to_shape_map()
    cache = sorted(tuple(value.shape) for value in model.posterior().cache)
    kept = [tuple(shape) for name, shape in shapes.items() if "variables_used" in name]
    assert sorted(shape for shape in kept if len(shape) > 1) == cache
    X = model.draw(20)[0]
    assert (tmp_path / "model" / "saved_model.pb").read_bytes().find(X.tobytes()[:32]) < 0


@pytest.mark.full
def test_code_of_a_user_that_needs_autograph(tmp_path: Path) -> None:
    save(svgp(Branching(0.2)), tmp_path / "model")
    plain, X = svgp(gpflow.likelihoods.Gaussian(0.2)), rows(5)
    mean, variance = plain.predict_y(X)
    assert_close(load(tmp_path / "model").predict_y(X), (mean, 2.0 * variance), rtol=1e-12)


@pytest.mark.full
def test_float32(tmp_path: Path) -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        model, X = svgp(), rows(5)
        save(model, tmp_path / "model")
        expected = model.predict_f(X)
    loaded = load(tmp_path / "model")  # whatever the float is now
    assert loaded.metadata.dtype == "float32"
    assert loaded.predict_f(X)[0].dtype == tf.float32
    assert_close(loaded.predict_f(X), expected, rtol=1e-5)
    assert_close(predict_in_batches(loaded, X), expected, rtol=1e-5)


def test_inputs_of_a_loaded_model(tmp_path: Path) -> None:
    model = points_svgp()
    save(model, tmp_path / "model")
    loaded = load(str(tmp_path / "model"))
    X = rows(4)
    expected = model.predict_f(X)
    assert_close(loaded.predict_f(X.tolist()), expected, rtol=1e-9)
    compiled = tf.function(loaded.predict_f, autograph=False)
    assert_close(compiled(tf.constant(X)), expected, rtol=1e-9)
    whole = np.arange(4).reshape(2, 2)
    assert_close(loaded.predict_f(whole), model.predict_f(whole.astype(float)), rtol=1e-9)
    assert loaded.predict_f(X[:0])[0].shape == (0, 1)
    for wrong in (X[0], X[:, :1], np.zeros((4, 3))):
        with pytest.raises(ValueError, match=r"Xnew must be \[N, 2\], found shape .*; pass the co"):
            loaded.predict_f(wrong)
    with pytest.raises(ValueError, match="full_cov must be True or False, found 1"):
        loaded.predict_f(X, 1)
    assert "SVGP, Matern32: 2 columns, 1 outputs, predict_f" in repr(loaded)


def test_gradients_of_a_loaded_model(tmp_path: Path) -> None:
    """With respect to its inputs, as optimisers of a design need them."""
    model = svgp()
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    gradients = []
    for predict in (model.predict_f, loaded.predict_f):
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
assert sorted(served) == ["mean", "variance"]
np.testing.assert_allclose(served["mean"], mean, rtol=1e-10)
density = loaded.signatures["predict_log_density"](Xnew=tf.constant(X), Y=tf.constant(mean))
np.testing.assert_allclose(density["log_density"], loaded.predict_log_density((X, mean)))
assert "gpflow" not in sys.modules and "interdomain" not in sys.modules
"""


@pytest.mark.full
def test_without_this_library(tmp_path: Path) -> None:
    """TensorFlow alone, in another process."""
    model, X = svgp(), rows(6)
    save(model, tmp_path / "model")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "mean.npy", model.predict_f(X)[0])
    arguments = [str(tmp_path / name) for name in ("model", "X.npy", "mean.npy")]
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_LIBRARY, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(points_svgp().posterior(), folder)
    return folder


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_nothing_is_overwritten_by_accident(tmp_path: Path) -> None:
    posterior = points_svgp().posterior()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("mine")
    with pytest.raises(ValueError, match="path must be a new folder, found the file .*file; pass"):
        save(posterior, tmp_path / "file", overwrite=True)
    with pytest.raises(ValueError, match="found .*folder with files that are no saved model; pass"):
        save(posterior, tmp_path / "folder", overwrite=True)
    assert names_in(tmp_path / "folder") == {"file"}
    (tmp_path / "empty").mkdir()
    save(posterior, tmp_path / "empty")
    with pytest.raises(ValueError, match="found a saved model in .*; pass another, or overwrite=T"):
        save(posterior, tmp_path / "empty")
    other = points_svgp(num_latent_gps=2).posterior()
    save(other, tmp_path / "empty", overwrite=True)
    assert load(tmp_path / "empty").num_outputs == 2
    assert names_in(tmp_path) == {"file", "folder", "empty"}


@pytest.mark.parametrize("when", ["written", "renamed"])
def test_an_interrupted_write_changes_nothing(
    when: str, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names_in(saved)

    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    model = points_svgp(num_latent_gps=2).posterior()
    if when == "written":
        monkeypatch.setattr("interdomain.serving.formats.Metadata.write", interrupted)
    else:
        rename = Path.rename

        def second_fails(self: Path, target: Path) -> Path:
            if self.name.endswith(".new"):
                raise KeyboardInterrupt
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", second_fails)
    with pytest.raises(KeyboardInterrupt):
        save(model, saved, overwrite=True)
    with pytest.raises(KeyboardInterrupt):
        save(model, saved.parent / "new")
    monkeypatch.undo()
    assert names_in(saved.parent) == {"model"} and names_in(saved) == before
    assert load(saved).num_outputs == 1


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
    softmax = points_svgp(num_latent_gps=3)
    softmax.likelihood = gpflow.likelihoods.Softmax(3)  # it draws samples, for a number of rows
    with pytest.raises(
        ValueError, match="likelihood: a Softmax cannot be compiled for any .* alone"
    ):
        save(softmax, free)
    assert not list(tmp_path.iterdir())
    save(selecting, free, num_columns=3)
    assert load(free).num_columns == 3


def test_wrong_folders(saved: Path, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("{", "is damaged: .* is no JSON"),
        ("[]", "is damaged: .* names no format"),
        ({"format": 99}, "is of format 99, and this version of interdomain reads format 1"),
        ({"functions": None}, "is damaged"),
        ({"unknown": 1}, "is damaged: .*unknown"),
        (
            {"functions": ["predict_f", "predict_g"]},
            "names functions that are not there, predict_g",
        ),
    ],
)
def test_damaged_metadata(changed: Any, message: str, saved: Path) -> None:
    file = saved / FILE
    before = file.read_text()
    text = changed if isinstance(changed, str) else json.dumps(json.loads(before) | changed)
    try:
        file.write_text(text)
        with pytest.raises(ValueError, match=message):
            load(saved)
    finally:
        file.write_text(before)


def test_damaged_files(saved: Path) -> None:
    (file,) = (saved / "variables").glob("*.data-*")
    before = file.read_bytes()
    try:
        os.truncate(file, len(before) // 2)
        with pytest.raises(ValueError, match="path: .* is damaged: .*; save the model again"):
            load(saved)
    finally:
        file.write_bytes(before)
