"""``fit_collapsed`` with features that the targets choose."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.choosing import choice
from interdomain.inducing_variables import PeriodicFourierFeatures, SphericalHarmonics
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import CollapsedSVGP
from interdomain.training import fit_collapsed
from interdomain.training.collapsed_checkpoints import PassCheckpoint


@pytest.fixture
def few_candidates() -> Iterator[None]:
    """What is tested does not need more."""
    pursue = choice.pursue

    def with_few(model: Any, num_inducing: int, **arguments: Any) -> Any:
        return pursue(model, num_inducing, **(arguments | {"max_candidates": 150, "growth": 3.0}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "pursue", with_few)
        patch.setattr(choice, "_TURN_STEPS", 5)
        patch.setattr("interdomain.training.site_rows._TURNS", 1)
        yield


def classified(num_rows: int, num_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes by two of the columns, with an interaction of a degree above two."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, num_columns))
    f = 3 * np.sin(2 * X[:, :1]) * np.cos(2 * X[:, -1 if num_columns < 2 else 1][:, None])
    return X, (f + 0.3 * rng.normal(size=f.shape) > 0).astype(float)


def harmonic_model(data: Any, likelihood: Any) -> CollapsedSVGP:
    num_columns = data[0].shape[1]
    kernel = SphericalMatern52(weight_variances=np.ones(num_columns))
    few = SphericalHarmonics.for_kernel(kernel, num_columns, max_degree=2)
    return CollapsedSVGP(data, FiniteRank(kernel, few), likelihood, few)


def box_model(data: Any, likelihood: Any) -> CollapsedSVGP:
    """Waves of a box, which no parameter moves."""
    kernel = Periodized.from_data(gpflow.kernels.Matern32(lengthscales=0.5), data[0], margin=1.5)
    few = PeriodicFourierFeatures.for_kernel(kernel, 3)
    return CollapsedSVGP(data, FiniteRank(kernel, few), likelihood, few)


@pytest.mark.slow
def test_waves_that_the_targets_ask_for(few_candidates: None) -> None:
    """A fast wave, for which a slow prior has little variance, is found, here for three functions;
    and the passes begin with the sites of the chosen features."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(150, 1))
    f = np.sin(2 * np.pi * 4 * X / 3)  # the box is three long
    data = X, (f > -0.5) * 1 + (f > 0.5) * 1
    model = box_model(data, gpflow.likelihoods.MultiClass(3))
    fitted = fit_collapsed(model, num_inducing=9, max_passes=3, steps=0, progress=False)
    assert np.max(np.abs(model.inducing_variable.frequencies)) > 3  # those of most variance end
    assert model.inducing_variable.num_inducing <= 9
    assert fitted.frozen == ()
    alone = box_model(data, gpflow.likelihoods.MultiClass(3))
    first = fit_collapsed(alone, max_passes=3, steps=0, progress=False)
    assert fitted.elbo > first.elbo + 5
    assert fitted.elbos[0] > first.elbo


@pytest.mark.slow
def test_columns_that_matter_and_features_are_found(
    tmp_path: Path, few_candidates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of three columns: new rows are predicted better than by harmonics up to degree 2. A run
    that was interrupted goes on with the same features, from what was in the folder when the second
    pass had been kept."""
    X, Y = classified(500, 3)
    data, held_out = (X[:250], Y[:250]), (X[250:], Y[250:])
    settings: dict[str, Any] = {"num_inducing": 24, "steps": 0, "progress": False}
    settings |= {"max_passes": 3, "tolerance": 0.0}
    model = harmonic_model(data, gpflow.likelihoods.Bernoulli())
    folder, saves, save = tmp_path / "interrupted", itertools.count(1), PassCheckpoint.save

    def copied(*arguments: Any) -> None:
        save(*arguments)
        if next(saves) == 2:
            shutil.copytree(tmp_path / "whole", folder)

    with monkeypatch.context() as patch:
        patch.setattr(PassCheckpoint, "save", copied)
        fitted = fit_collapsed(model, checkpoint_dir=tmp_path / "whole", **settings)
    assert fitted.choice is not None and len(fitted.choice.turns) == 2
    assert set(fitted.frozen) == {
        "kernel.kernel.weight_variances",
        "kernel.kernel.bias_variance",
    }
    assert not any(parameter.trainable for parameter in model.feature_parameters.values())
    scales = model.kernel.kernel.weight_variances.numpy()
    assert min(scales[:2]) > 3 * max(scales[2:])
    assert model.inducing_variable.num_inducing == 24
    assert max(model.inducing_variable.degrees) > 2
    assert np.mean(model.predict_log_density(held_out)) > fitted.choice.turns[0] + 0.1

    assert len(fitted.elbos) > 2
    monkeypatch.setattr(choice, "pursue", None)  # nothing is chosen again
    resumed = harmonic_model(data, gpflow.likelihoods.Bernoulli())
    again = fit_collapsed(resumed, checkpoint_dir=folder, resume=True, **settings)
    assert fitted.choice.pursuit is not None and again.choice.pursuit is None
    assert again.choice.turns == fitted.choice.turns and again.frozen == fitted.frozen
    np.testing.assert_array_equal(resumed.inducing_variable.chains, model.inducing_variable.chains)
    np.testing.assert_allclose(again.elbos, fitted.elbos, rtol=1e-9)
    with pytest.raises(ValueError, match="holds .* already; pass resume=True"):
        fit_collapsed(model, checkpoint_dir=folder, **settings)


def test_points_are_of_no_dictionary() -> None:
    X, Y = classified(30, 2)
    points = idm.models.CollapsedSVGP(
        (X, Y), gpflow.kernels.Matern32(), gpflow.likelihoods.Bernoulli(), X[:5]
    )
    with pytest.raises(ValueError, match="features of an orthogonal dictionary, found InducingPoi"):
        fit_collapsed(points, num_inducing=20, progress=False)
