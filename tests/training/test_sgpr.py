"""The recipe: features from a subset, one pass, and no data afterwards."""

from pathlib import Path
from typing import Any
from unittest import mock

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain import fit
from tests.parts import frozen, with_harmonics
from tests.training.conftest import values

pytestmark = pytest.mark.usefixtures("no_jitter")  # GPflow's SGPR adds it to a diagonal Kuu, too
NUM_ROWS = 400


def make_data(num_rows: int = NUM_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, 2))
    return X, np.sin(3 * X[:, :1]) + 0.05 * X[:, 1:] + 0.1 * rng.normal(size=(num_rows, 1))


def make_model(data: Any = None) -> idm.models.StructuredSGPR:
    parts = with_harmonics(idm.kernels.SphericalMatern32(weight_variances=np.ones(2)), 4)
    data = make_data() if data is None else data
    arguments: dict[str, Any] = {"noise_variance": 0.5, "charge": "trace", "batch_size": 64}
    return idm.models.StructuredSGPR(data, *parts, **arguments)


def test_the_recipe(computed_rows: list[int]) -> None:
    model = make_model()
    start = values(model)
    fitted = fit(model, steps=30, progress=False, options={"subset_size": 100, "subset_steps": 15})
    # What the features depend on is trained on the subset, and frozen; the rest on all rows.
    assert set(fitted.frozen) == {"kernel.weight_variances", "kernel.bias_variance"}
    scales = model.kernel.weight_variances
    assert not scales.trainable and not model.kernel.bias_variance.trainable
    assert scales[0] > 2 * scales[1]  # the target varies along the first column
    before = start[".kernel.weight_variances"]
    assert not np.allclose(scales.unconstrained_variable, before)
    assert fitted.subset is not None and fitted.subset.steps <= 15
    assert sum(computed_rows) == NUM_ROWS
    # The result is a maximum of the bound of all rows.
    stock = gpflow.models.SGPR(make_data(), model.kernel, model.inducing_variable)
    stock.likelihood = model.likelihood
    np.testing.assert_allclose(fitted.elbo, stock.elbo(), rtol=1e-5)
    with tf.GradientTape() as tape:
        loss = stock.training_loss()
    gradients = tape.gradient(loss, model.trainable_variables)
    assert len(gradients) == 3  # variance, lengthscale, noise
    assert all(abs(gradient) < 1e-2 * abs(loss) for gradient in gradients)
    assert fitted.seconds >= fitted.subset_seconds + fitted.pass_seconds


def test_what_is_frozen_already_needs_no_subset(tmp_path: Path) -> None:
    """And a folder that is not there is made, also without one."""
    model = make_model()
    frozen(*model.feature_parameters.values())
    parts = model.statistics, model.kernel, model.inducing_variable
    statistics = idm.models.StructuredSGPR(*parts, noise_variance=0.5)
    folder = tmp_path / "new"
    fitted = fit(statistics, steps=10, checkpoint_dir=folder, progress=False)
    assert fitted.subset is None and fitted.frozen == ()
    assert fitted.steps == 10
    assert (folder / "step-10.index").exists() and not (folder / "subset").exists()


def test_an_interrupted_recipe_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends where one that was not interrupted ends."""
    options = {"subset_size": 50, "subset_steps": 4}
    settings: dict[str, Any] = {"options": options, "steps": 5, "progress": False}
    whole = make_model()
    fit(whole, checkpoint_dir=tmp_path / "whole", **settings)

    model, folder = make_model(), tmp_path / "interrupted"
    after_subset = mock.Mock(side_effect=KeyboardInterrupt)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(
            "interdomain.models.structured_sgpr.training.gpflow.set_trainable", after_subset
        )
        fit(model, checkpoint_dir=folder, **settings)
    resumed = make_model()
    fit(resumed, checkpoint_dir=folder, **settings)
    for path, value in values(whole).items():
        np.testing.assert_array_equal(values(resumed)[path], value)


def test_subsets_are_drawn_without_replacement_from_all_rows() -> None:
    model = make_model((make_data()[0], np.arange(NUM_ROWS, dtype=float)[:, None]))
    drawn = model.draw(100, seed=3)[1][:, 0]
    assert len(set(drawn)) == len(drawn) == 100
    assert drawn.min() < 40 and drawn.max() > 360
    assert set(model.draw(100, seed=4)[1][:, 0]) != set(drawn)
    assert len(model.draw(10_000)[0]) == NUM_ROWS


def test_subsets_of_other_features_share_parameters() -> None:
    """Input scales from a few harmonics, for a model of many."""
    model = make_model()
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(model.kernel, 2, 1)
    subset = model.model_of(model.draw(40, seed=3), inducing_variable=few)
    assert subset.inducing_variable is few and subset.kernel is model.kernel
    assert subset.likelihood is model.likelihood and subset.mean_function is model.mean_function
    assert model._built_features is None  # the many were not even traced


def test_wrong_arguments() -> None:
    for arguments, message in [
        ({"options": {"subset_size": 0}}, "subset_size must be .*found 0"),
        ({"options": {"tolerance": 1.5}}, "options: training a StructuredSGPR has no tolerance"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(**{"model": make_model()} | arguments)
