"""``fit_sgpr`` with features that the data choose: scales, features, and what is kept of both."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.choosing import choice
from interdomain.inducing_variables import (
    PeriodicFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern32, SphericalMatern52
from interdomain.models import StructuredSGPR
from interdomain.training import SGPRFit, fit_sgpr, sgpr

SETTINGS: dict[str, Any] = {"subset_steps": 2, "steps": 2, "progress": False}


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Fewer candidates and steps: what is tested does not need more."""
    pursuit = choice.pursue

    def with_few(model: Any, num_inducing: int, **arguments: Any) -> Any:
        few = {"max_candidates": 150, "steps": 2, "growth": 3.0}
        return pursuit(model, num_inducing, **(arguments | few))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "pursue", with_few)
        patch.setattr(choice, "_TURN_STEPS", 5)
        yield


def make_data(num_rows: int, num_columns: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, num_columns))
    return X, np.sin(2 * X[:, :1]) + np.cos(3 * X[:, 1:2]) + 0.1 * rng.normal(size=(num_rows, 1))


def make_model(data: Any, kind: type[SphericalMatern52] = SphericalMatern52) -> StructuredSGPR:
    num_columns = data[0].shape[1]
    kernel = kind(weight_variances=np.ones(num_columns))
    few = SphericalHarmonics.for_kernel(kernel, num_columns, max_degree=2)
    return StructuredSGPR(data, FiniteRank(kernel, few), few, noise_variance=0.1)


def parameters_of(model: StructuredSGPR) -> list[np.ndarray]:
    return [parameter.numpy() for parameter in model.parameters]


WHOLE: dict[str, Any] = {"num_inducing": 35, "subset_steps": 12, "steps": 5, "progress": False}


@pytest.fixture(scope="module")
def whole(
    quick: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[StructuredSGPR, SGPRFit, Path]:
    """A run that nothing interrupted, and the folder that it had written when features were chosen;
    no test changes either."""
    folder = tmp_path_factory.mktemp("choice")
    model = make_model(make_data(250, 3))
    fit = sgpr.fit

    def copied(*arguments: Any, **options: Any) -> Any:
        shutil.copytree(folder / "whole", folder / "chosen")
        return fit(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sgpr, "fit", copied)
        fitted = fit_sgpr(model, checkpoint_dir=folder / "whole", **WHOLE)
    return model, fitted, folder / "chosen"


@pytest.mark.slow
def test_columns_that_matter_and_features_are_found(whole: Any) -> None:
    """Two of three columns: new rows are predicted better than by all harmonics up to degree 2."""
    model, fitted, _ = whole
    assert fitted.subset is None and fitted.choice is not None
    assert set(fitted.frozen) == {
        "kernel.kernel.weight_variances",
        "kernel.kernel.bias_variance",
    }
    assert not any(parameter.trainable for parameter in model.feature_parameters.values())
    scales = model.kernel.kernel.weight_variances.numpy()
    assert min(scales[:2]) > 3 * max(scales[2:])
    assert model.inducing_variable.num_inducing == 35
    assert max(model.inducing_variable.degrees) > 2
    new = np.random.default_rng(5).normal(size=(300, 3))
    density = model.predict_log_density((new, np.sin(2 * new[:, :1]) + np.cos(3 * new[:, 1:2])))
    assert len(fitted.choice.turns) == 2
    assert np.mean(density) > fitted.choice.turns[0] + 0.3
    assert str(fitted.choice).startswith("held out, by turns of features and scales: ")
    assert "ended by" in str(fitted.choice)


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_the_same_features(
    whole: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, fitted, chosen = whole
    folder = shutil.copytree(chosen, tmp_path / "interrupted")
    resumed = make_model(make_data(250, 3))
    monkeypatch.setattr(choice, "pursue", None)  # nothing is chosen again
    again = fit_sgpr(resumed, checkpoint_dir=folder, resume=True, **WHOLE)
    assert fitted.choice.pursuit is not None and again.choice.pursuit is None
    assert again.choice.turns == fitted.choice.turns and again.frozen == fitted.frozen
    assert again.frozen
    np.testing.assert_array_equal(resumed.inducing_variable.chains, fitted.choice.pursuit.atoms)
    assert resumed.inducing_variable.column_order == model.inducing_variable.column_order
    for value, other in zip(parameters_of(resumed), parameters_of(model), strict=True):
        np.testing.assert_array_equal(value, other)


@pytest.mark.slow
def test_what_was_kept_for_another_model_is_refused(whole: Any, tmp_path: Path) -> None:
    file = Path(shutil.copytree(whole[2], tmp_path / "copy")) / "choice.npz"
    settings = {**WHOLE, "resume": True, "checkpoint_dir": file.parent}

    def refused(kind: type[SphericalMatern52], message: str, **other: Any) -> None:
        with pytest.raises(ValueError, match=rf"checkpoint_dir: .*choice\.npz .*{message}"):
            fit_sgpr(make_model(make_data(90, 3), kind), **(settings | other))

    refused(SphericalMatern52, "num_inducing is 35 there, and 15 here; remove", num_inducing=15)
    refused(SphericalMatern52, "holds chosen features already; pass resume=True", resume=False)
    refused(SphericalMatern32, "kinds is .*Matern52.* there, and .*Matern32")
    file.write_bytes(b"nothing")
    refused(SphericalMatern52, "holds no features for this model .*; remove that file")


def test_a_single_row() -> None:
    """None is held out then; and no more features than were asked for. A column is constant."""
    X, Y = make_data(1, 3)
    X[:, 1] = 0.0
    model = make_model((X, Y))
    fitted = fit_sgpr(model, num_inducing=10, max_turns=0, **SETTINGS)
    assert model.inducing_variable.num_inducing == 10
    assert np.all(np.isfinite(fitted.choice.turns))
    assert np.isfinite(model.elbo())


def test_waves_have_no_feature_parameters() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=[120, 1])
    Y = np.sin(30 * X) + 0.1 * rng.normal(size=[120, 1])
    kernel = Periodized.from_data(gpflow.kernels.Matern52(lengthscales=0.3), X)
    few = PeriodicFourierFeatures.for_kernel(kernel, 5)
    model = StructuredSGPR((X, Y), FiniteRank(kernel, few), few, noise_variance=0.1)
    fitted = fit_sgpr(model, num_inducing=31, max_turns=0, **SETTINGS)
    assert fitted.frozen == () and len(fitted.choice.turns) == 1
    assert model.inducing_variable.num_inducing in (30, 31)
    mean, _ = model.predict_f(X)
    assert np.mean((mean - Y) ** 2) < 0.05 < np.var(Y)


def test_too_few_for_the_features_that_stay() -> None:
    X, Y = make_data(20)
    zonal, other = SphericalMatern52(), gpflow.kernels.Matern32()
    few = SphericalHarmonics.for_kernel(zonal, 2, 1)
    points = gpflow.inducing_variables.InducingPoints(X[:8])
    model = StructuredSGPR((X, Y), zonal + other, SumInducingVariables([few, points]))
    with pytest.raises(ValueError, match="num_inducing must have room .* found 8; pass 9 or more"):
        fit_sgpr(model, num_inducing=8, max_turns=0, **SETTINGS)


def test_other_features_are_refused_before_anything_is_trained() -> None:
    X, Y = make_data(20)
    model = idm.models.StructuredSGPR((X, Y), gpflow.kernels.Matern32(), X[:3])
    before = parameters_of(model)
    with pytest.raises(ValueError, match="features of an orthogonal dictionary"):
        fit_sgpr(model, num_inducing=8, **SETTINGS)
    for value, other in zip(parameters_of(model), before, strict=True):
        np.testing.assert_array_equal(value, other)
