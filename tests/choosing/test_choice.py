"""Features that the data choose in a fit: scales, features, files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest

from interdomain import fit
from interdomain._tracing import operation_by_operation
from interdomain.choosing import choice
from interdomain.inducing_variables import BoxFourierFeatures, SphericalHarmonics
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import DualSVGP, StructuredSGPR

WHOLE: dict[str, Any] = {"num_inducing": 24, "options": {"subset_steps": 12}, "steps": 3}
SCALES = {"kernel.kernel.weight_variances", "kernel.kernel.bias_variance"}


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Fewer candidates and steps: what is tested does not need more."""
    pursuit = choice.pursue

    def with_few(model: Any, num_inducing: int, **arguments: Any) -> Any:
        few = {"max_candidates": 150, "growth": 3.0}
        return pursuit(model, num_inducing, **(arguments | few))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "pursue", with_few)
        patch.setattr(choice, "_TURN_STEPS", 5)
        patch.setattr(choice, "_ROUND_STEPS", 2)
        patch.setattr("interdomain.models.dual_svgp.subset._TURNS", 1)
        yield


def make_data(num_rows: int, num_columns: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, num_columns))
    return X, np.sin(2 * X[:, :1]) + np.cos(3 * X[:, 1:2]) + 0.1 * rng.normal(size=(num_rows, 1))


def make_model(data: Any, kind: Any = SphericalMatern52, likelihood: Any = None) -> Any:
    num_columns = data[0].shape[1]
    kernel = kind(weight_variances=np.ones(num_columns))
    few = SphericalHarmonics.for_kernel(kernel, num_columns, max_degree=2)
    if likelihood is not None:
        return DualSVGP(data, FiniteRank(kernel, few), likelihood, few)
    return StructuredSGPR(data, FiniteRank(kernel, few), few, noise_variance=0.1)


def values_of(model: Any) -> list[np.ndarray]:
    return [parameter.numpy() for parameter in model.parameters]


def assert_found(model: Any, fitted: Any) -> None:
    """The two of three columns that matter, and features of them."""
    assert set(fitted.frozen) == SCALES
    assert not any(parameter.trainable for parameter in model.feature_parameters.values())
    scales = model.kernel.kernel.weight_variances.numpy()
    assert min(scales[:2]) > 3 * max(scales[2:])
    assert max(model.inducing_variable.degrees) > 2


@pytest.mark.slow
@operation_by_operation()
def test_regression(tmp_path: Path) -> None:
    """New rows are predicted better than by all harmonics up to degree 2. A run that is resumed
    chooses the same, and has the same parameters. Nothing is compiled for a few steps."""
    model = make_model(make_data(250, 3))
    fitted = fit(model, checkpoint_dir=tmp_path, **WHOLE)
    assert_found(model, fitted)
    assert fitted.subset is None and model.inducing_variable.num_inducing == 24
    new = np.random.default_rng(5).normal(size=(300, 3))
    density = model.predict_log_density((new, np.sin(2 * new[:, :1]) + np.cos(3 * new[:, 1:2])))
    assert np.mean(density) > fitted.choice.turns[0] + 0.3
    assert str(fitted.choice).startswith("held out, by turns of features and scales: ")
    assert "ended by" in str(fitted.choice)

    resumed = make_model(make_data(250, 3))
    again = fit(resumed, checkpoint_dir=tmp_path, **WHOLE)
    assert again.choice.turns == fitted.choice.turns and again.frozen == fitted.frozen
    np.testing.assert_array_equal(resumed.inducing_variable.chains, model.inducing_variable.chains)
    assert resumed.inducing_variable.column_order == model.inducing_variable.column_order
    for value, expected in zip(values_of(resumed), values_of(model), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-12)


@pytest.mark.slow
def test_labels() -> None:
    """Harmonics are chosen for classes, too; tests/models/dual_svgp resumes their fits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    f = 3 * np.sin(2 * X[:, :1]) * np.cos(2 * X[:, 1:2])
    Y = (f + 0.3 * rng.normal(size=f.shape) > 0).astype(float)
    data, held_out = (X[:250], Y[:250]), (X[250:], Y[250:])
    settings: dict[str, Any] = {"num_inducing": 24, "steps": 3, "progress": False}
    settings["options"] = {"tolerance": 0.0, "subset_steps": 12}
    model = make_model(data, likelihood=gpflow.likelihoods.Bernoulli())
    fitted = fit(model, **settings)
    assert_found(model, fitted)
    assert model.inducing_variable.num_inducing == 24 and len(fitted.elbos) > 2
    assert np.mean(model.predict_log_density(held_out)) > fitted.choice.turns[0] + 0.1


@pytest.mark.filterwarnings("ignore:kernel. .* of the variance of the base kernel")
def test_waves_have_no_feature_parameters() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=[120, 1])
    Y = np.sin(30 * X) + 0.1 * rng.normal(size=[120, 1])
    kernel = Periodized.from_data(gpflow.kernels.Matern52(lengthscales=0.3), X)
    few = BoxFourierFeatures.for_kernel(kernel, 5)
    model = StructuredSGPR((X, Y), FiniteRank(kernel, few), few, noise_variance=0.1)
    fitted = fit(model, num_inducing=31, steps=50, progress=False)
    assert fitted.frozen == ()
    assert model.inducing_variable.num_inducing in (30, 31)
    assert np.mean((model.predict_f(X)[0] - Y) ** 2) < 0.05 < np.var(Y)


def test_wrong_models_are_refused_before_anything_is_trained() -> None:
    X, Y = make_data(20)
    other, Z = gpflow.kernels.Matern32(), X[:8].copy()
    label_model = DualSVGP((X, Y > 0), other, gpflow.likelihoods.Bernoulli(), Z)
    for model in (StructuredSGPR((X, Y), other, Z), label_model):
        before = values_of(model)
        with pytest.raises(ValueError, match="of an orthogonal dictionary, found InducingPoints"):
            fit(model, num_inducing=20, progress=False)
        for value, expected in zip(values_of(model), before, strict=True):
            np.testing.assert_array_equal(value, expected)
