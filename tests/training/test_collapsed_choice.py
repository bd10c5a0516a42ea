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
from interdomain.inducing_variables import PeriodicFourierFeatures, SphericalHarmonics
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import CollapsedSVGP
from interdomain.training import choice, fit_collapsed
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


def test_columns_that_matter_and_features_are_found(few_candidates: None) -> None:
    """Two of three columns: new rows are predicted better than by harmonics up to degree 2."""
    X, Y = classified(800, 3)
    start, model = (
        harmonic_model((X[:400], Y[:400]), gpflow.likelihoods.Bernoulli()) for _ in range(2)
    )
    fit_collapsed(start, max_passes=8, progress=False)
    fitted = fit_collapsed(model, num_inducing=40, max_passes=8, progress=False)
    assert fitted.choice is not None and len(fitted.choice.turns) == 2
    assert set(fitted.frozen) == {
        "kernel.kernel.weight_variances",
        "kernel.kernel.bias_variance",
    }
    assert not any(parameter.trainable for parameter in model.feature_parameters.values())
    scales = model.kernel.kernel.weight_variances.numpy()
    assert min(scales[:2]) > 3 * max(scales[2:])
    assert model.inducing_variable.num_inducing == 40
    assert max(model.inducing_variable.degrees) > 2
    held_out = X[400:], Y[400:]
    densities = [float(np.mean(one.predict_log_density(held_out))) for one in (start, model)]
    assert densities[1] > densities[0] + 0.1


LIKELIHOODS = {
    "probit": (gpflow.likelihoods.Bernoulli, lambda f: (f > 0) * 1.0),
    "classes": (
        lambda: gpflow.likelihoods.MultiClass(3),
        lambda f: (f > -0.5) * 1 + (f > 0.5) * 1,
    ),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_waves_that_the_targets_ask_for(name: str, few_candidates: None) -> None:
    """A fast wave, for which a slow prior has little variance, is found; and
    the passes begin with the sites of the chosen features."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(150, 1))
    kind, of_function = LIKELIHOODS[name]
    data = X, of_function(np.sin(2 * np.pi * 4 * X / 3))  # the box is three long
    model = box_model(data, kind())
    fitted = fit_collapsed(model, num_inducing=9, max_passes=8, progress=False)
    assert np.max(np.abs(model.inducing_variable.frequencies)) > 3  # those of most variance end
    assert model.inducing_variable.num_inducing <= 9
    assert fitted.frozen == ()
    alone = box_model(data, kind())
    first = fit_collapsed(alone, max_passes=8, progress=False)
    assert fitted.elbo > first.elbo + 5
    assert fitted.elbos[0] > first.elbo


def test_an_interrupted_run_goes_on_with_the_same_features(
    tmp_path: Path, few_candidates: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From what was in the folder when the second pass had been kept."""
    data = classified(120, 2)
    settings: dict[str, Any] = {
        "num_inducing": 14,
        "subset_steps": 3,
        "max_passes": 4,
        "progress": False,
    }
    whole = harmonic_model(data, gpflow.likelihoods.Bernoulli())
    folder, saves, save = tmp_path / "interrupted", itertools.count(1), PassCheckpoint.save

    def copied(*arguments: Any) -> None:
        save(*arguments)
        if next(saves) == 2:
            shutil.copytree(tmp_path / "whole", folder)

    with monkeypatch.context() as patch:
        patch.setattr(PassCheckpoint, "save", copied)
        fitted = fit_collapsed(whole, checkpoint_dir=tmp_path / "whole", **settings)
    assert len(fitted.elbos) > 2
    monkeypatch.setattr(choice, "pursue", None)  # nothing is chosen again
    resumed = harmonic_model(data, gpflow.likelihoods.Bernoulli())
    again = fit_collapsed(resumed, checkpoint_dir=folder, resume=True, **settings)
    assert fitted.choice.pursuit is not None and again.choice.pursuit is None
    assert again.choice.turns == fitted.choice.turns and again.frozen == fitted.frozen
    np.testing.assert_array_equal(resumed.inducing_variable.chains, whole.inducing_variable.chains)
    np.testing.assert_allclose(again.elbos, fitted.elbos, rtol=1e-9)
    with pytest.raises(ValueError, match="holds .* already; pass resume=True"):
        fit_collapsed(whole, checkpoint_dir=folder, **settings)


def test_points_are_of_no_dictionary() -> None:
    X, Y = classified(30, 2)
    points = idm.models.CollapsedSVGP(
        (X, Y), gpflow.kernels.Matern32(), gpflow.likelihoods.Bernoulli(), X[:5]
    )
    with pytest.raises(ValueError, match="features of an orthogonal dictionary, found InducingPoi"):
        fit_collapsed(points, num_inducing=20, progress=False)
