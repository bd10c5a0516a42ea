"""Estimators in the interface of scikit-learn: their predictions, and its tools."""

from __future__ import annotations

import pickle
import sys
from typing import Any

import gpflow
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

import interdomain as idm
from interdomain.estimators import GPClassifier, GPRegressor
from interdomain.estimators.candidates import ENDING, names_for
from interdomain.estimators.prepared import prepare
from interdomain.estimators.recommend import choose
from tests.estimators.frames import printed

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(400, 2))
F = 100 + 20 * np.sin(6 * X[:, 0]) * X[:, 1]
Y = F + RNG.normal(size=len(F))
SHOP = RNG.integers(30, size=len(F))
OF_SHOP = 10 * RNG.normal(size=30)
NEW = RNG.uniform(0.1, 0.9, size=(50, 2))
F_NEW = 100 + 20 * np.sin(6 * NEW[:, 0]) * NEW[:, 1]


def regressor(model: str = "waves", **parameters: Any) -> GPRegressor:
    return GPRegressor(model, progress=False, **parameters)


def error(found: GPRegressor) -> float:
    return float(np.sqrt(np.mean(np.square(found.predict(NEW) - F_NEW))))


def test_predictions_are_those_of_the_model_in_units_of_y() -> None:
    """Mean, deviation, covariance, draws and intervals of one output and of two."""
    for targets in (Y, np.column_stack([Y, 3 - Y])):
        found = regressor().fit(X, targets)
        mean, deviation = found.predict(NEW, return_std=True)
        assert mean.shape == deviation.shape == (50, *np.shape(targets)[1:])
        rows = (NEW - X.mean(axis=0)) / X.std(axis=0)
        y_mean, variance = (np.asarray(part) for part in found.model_.predict_y(rows))
        columns = np.reshape(targets, [len(X), -1])
        np.testing.assert_allclose(
            mean.reshape(50, -1), y_mean * columns.std(axis=0) + columns.mean(axis=0)
        )
        np.testing.assert_allclose(
            deviation.reshape(50, -1), np.sqrt(variance) * columns.std(axis=0)
        )
        also, covariance = found.predict(NEW, return_cov=True)
        np.testing.assert_allclose(also, mean)
        assert covariance.shape == (50, 50, *np.shape(targets)[1:])
        diagonal = np.moveaxis(np.diagonal(covariance), 0, -1)
        np.testing.assert_allclose(diagonal, deviation**2, rtol=1e-6)
        draws = found.sample_y(NEW[:3], 4_000, random_state=1)
        assert draws.shape == (3, *np.shape(targets)[1:], 4_000)
        np.testing.assert_allclose(draws.mean(axis=-1), mean[:3], atol=0.15)
        np.testing.assert_allclose(draws.std(axis=-1), deviation[:3], rtol=0.1)
        low, high = found.predict_interval(NEW, 0.5)
        np.testing.assert_allclose(high - mean, norm.ppf(0.75) * deviation, rtol=1e-6)
        np.testing.assert_allclose(mean - low, high - mean, rtol=1e-6)
    with pytest.raises(RuntimeError, match="At most one of"):
        found.predict(NEW, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="level must be between 0 and 1, found 1.5"):
        found.predict_interval(NEW, 1.5)


def test_copies_predict_the_same(tmp_path: Any) -> None:
    found = regressor().fit(X, Y)
    joblib.dump(found, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(found)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(copy.predict(NEW), found.predict(NEW))
    fresh = clone(found)
    assert fresh.get_params() == found.get_params() and not hasattr(fresh, "model_")
    with pytest.raises(NotFittedError):
        fresh.predict(NEW)


def test_the_program_makes_the_same_model() -> None:
    for found, targets in ((regressor(), Y), (GPClassifier("waves", progress=False), Y > 100)):
        found.fit(X, targets)
        scope = printed(found.code_, X=X, Y=targets)
        predicted = scope["predict"](NEW)
        if isinstance(found, GPClassifier):
            np.testing.assert_allclose(predicted, found.predict_proba(NEW), rtol=1e-6)
        else:
            for mine, printed_one in zip(
                found.predict(NEW, return_std=True), predicted, strict=True
            ):
                np.testing.assert_allclose(mine, printed_one[:, 0], rtol=1e-6)
    assert found.report_.startswith("Take waves: Fourier features")


FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "shop": [f"shop {k}" for k in SHOP]})


def test_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), regressor()).fit(X, Y)
    mean, deviation = pipeline.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, regressor().fit(X, Y).predict(NEW), rtol=1e-6)
    assert deviation.shape == (50,)


def test_column_transformer_in_cross_validation() -> None:
    """Its ``set_output`` gives a frame, whose column of whole numbers is a category."""
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "b"]), ("shops", OrdinalEncoder(), ["shop"])]
    ).set_output(transform="pandas")
    pipeline = make_pipeline(columns, regressor(categorical=["shops__shop"]))
    assert np.min(cross_val_score(pipeline, FRAME, Y + OF_SHOP[SHOP], cv=2)) > 0.9


def test_grid_search() -> None:
    search = GridSearchCV(regressor(seconds=5), {"model": ["waves", "exact"]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.9 and search.best_estimator_.score(X, Y) > 0.9
    assert len(search.cv_results_["params"]) == 2


def test_frames_and_levels() -> None:
    """Columns of pandas and polars by name, many levels as groups, and integers on request."""
    names = [f"shop {k}" for k in SHOP]
    colours = np.array(["red", "blue"])[(X[:, 0] > 0.5).astype(int)]
    data = {"a": X[:, 0], "shop": names, "b": X[:, 1], "colour": colours}
    targets = Y + OF_SHOP[SHOP]
    predicted = []
    for frame in (pd.DataFrame(data), pl.DataFrame(data)):
        found = regressor().fit(frame, targets)
        assert list(found.feature_names_in_) == list(data) and found.n_features_in_ == 4
        predicted.append(found.predict(frame[:20]))
    np.testing.assert_allclose(*predicted, rtol=1e-5)
    np.testing.assert_allclose(predicted[0], targets[:20], atol=4)
    new = pl.DataFrame({name: column[:2] for name, column in data.items()})
    new = new.with_columns(shop=pl.Series(["shop 0", "a new one"]))
    deviations = found.predict(new, return_std=True)[1]
    spread = float(np.std(OF_SHOP[np.unique(SHOP)]))
    assert deviations[0] < 2 and 0.6 * spread < deviations[1] < 1.7 * spread
    with pytest.warns(UserWarning, match="'colour' that the training rows do not have"):
        found.predict(new.with_columns(colour=pl.Series(["green", "red"])))
    coded = np.column_stack([X, SHOP])
    by_number = regressor(categorical=[2]).fit(coded, targets)
    np.testing.assert_allclose(by_number.predict(coded[:20]), targets[:20], atol=4)
    with pytest.raises(ValueError, match="categorical must have names or numbers of columns"):
        regressor(categorical=["shop"]).fit(coded, targets)


@pytest.mark.parametrize("model", ["waves", "splines", "effects", "exact"])
def test_rows_that_keep_coming(model: str) -> None:
    """One fit of all rows, and fits of parts, have the same sums and predictions."""
    found = regressor(model, bounds={0: (0, 1), 1: (0, 1)})
    for part in (slice(200), slice(200, 300), slice(300, None)):
        found.partial_fit(X[part], Y[part])
    assert error(found) < 1
    scaler, (shift,), (scale,) = found._data.scaler, found._data.shift, found._data.scale
    rows, targets = scaler(X), ((Y - shift) / scale)[:, None]
    if model == "exact":
        np.testing.assert_array_equal(found.model_.data[0], rows)
        with pytest.raises(ValueError, match="another one than 'exact' for more than 2,000 rows"):
            found.partial_fit(np.tile(X, [5, 1]), np.tile(Y, 5))
        return
    whole = idm.models.StructuredSGPR(
        (rows, targets),
        found.model_.kernel,
        found.model_.inducing_variable,
        likelihood=found.model_.likelihood,
        progress=False,
    )
    expected = np.asarray(whole.predict_f(scaler(NEW))[0])[:, 0] * scale + shift
    np.testing.assert_allclose(found.predict(NEW), expected, rtol=1e-9)
    for wrong, message in (
        ([[2.0, 0.5]], "X must be within the box of the model, found 1 of 1 rows beyond it"),
        ([[0.5]], "X has 1 features, but GPRegressor is expecting 2 features"),
    ):
        with pytest.raises(ValueError, match=message):
            found.partial_fit(wrong, [1.0])
    with pytest.raises(ValueError, match="y must have 1 outputs"):
        found.partial_fit(X[:3], np.ones((3, 2)))
    with pytest.raises(ValueError, match="noise_variance must be passed in all calls or in none"):
        found.partial_fit(X[:3], Y[:3], noise_variance=np.ones(3))


def test_rows_with_levels_keep_coming() -> None:
    rows, targets = np.column_stack([X, SHOP]), Y + OF_SHOP[SHOP]
    found = regressor("waves", categorical=[2], bounds={0: (0, 1), 1: (0, 1)})
    found.partial_fit(rows[:300], targets[:300]).partial_fit(rows[300:], targets[300:])
    np.testing.assert_allclose(found.predict(rows[:20]), targets[:20], atol=4)
    with pytest.raises(ValueError, match="X must have levels of the first rows in columns"):
        found.partial_fit([[0.5, 0.5, 77]], [1.0])
    points = regressor("points").fit(X[:60], Y[:60])
    with pytest.raises(ValueError, match="model must be one to which rows can be added.*SVGP"):
        points.partial_fit(X[:3], Y[:3])


def test_known_noise_of_rows() -> None:
    """Rows of small noise count more; intervals are those of f."""
    variances = np.where(np.arange(len(X)) % 2, 0.01, 400.0)
    noisy = F + np.sqrt(variances) * RNG.normal(size=len(F))
    found = regressor().fit(X, noisy, noise_variance=variances)
    assert found.model_.likelihood.variance.numpy() == 1.0
    assert not found.model_.likelihood.variance.trainable
    mean, deviation = found.predict(NEW, return_std=True)
    assert error(found) < 0.5 < error(regressor().fit(X, noisy))
    assert np.mean(np.abs(mean - F_NEW) < 3 * deviation) > 0.8
    low, high = found.predict_interval(NEW, 0.5)
    np.testing.assert_allclose(high - low, 2 * norm.ppf(0.75) * deviation)
    for wrong, message in (
        ({"noise_variance": -variances}, "noise_variance must be .N., positive"),
        ({"noise_variance": variances[:3]}, "noise_variance must be .N., positive"),
    ):
        with pytest.raises(ValueError, match=message):
            regressor().fit(X, noisy, **wrong)
    with pytest.raises(ValueError, match="None with noise='student'"):
        regressor(noise="student").fit(X, noisy, noise_variance=variances)
    with pytest.raises(ValueError, match="model must be one for these rows"):
        regressor("effects").fit(X, noisy, noise_variance=variances)


def test_outliers() -> None:
    """With Student-t noise, intervals have their coverage, and outliers do not move the mean."""
    rng = np.random.default_rng(1)
    noisy = F + rng.standard_t(1.5, size=len(F))
    found = regressor(noise="student").fit(X, noisy)
    assert error(found) < 0.8 * error(regressor().fit(X, noisy))
    ends = [found.predict_interval(X, level) for level in (0.5, 0.9)]
    inside = [np.mean((low < noisy) & (noisy < high)) for low, high in ends]
    np.testing.assert_allclose(inside, [0.5, 0.9], atol=0.16)
    assert found.sample_y(NEW[:2], 5).shape == (2, 5)


def test_float32() -> None:
    """Draws and joint covariances with Student-t noise, in float32."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        found = regressor("neighbours", noise="student").fit(X[:40], Y[:40])
        assert found.sample_y(NEW[:2], 5).shape == (2, 5)
        _, covariance = found.predict(NEW[:2], return_cov=True)
        deviation = found.predict(NEW[:2], return_std=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviation, rtol=1e-3)


def test_beyond_the_box() -> None:
    """Nothing is known there: the mean and the deviation of y."""
    found = regressor().fit(X, Y)
    mean, deviation = found.predict([[5.0, 0.5]], return_std=True)
    np.testing.assert_allclose([mean[0], deviation[0]], [Y.mean(), Y.std()])
    low, high = found.predict_interval([[5.0, 0.5], NEW[0]])
    np.testing.assert_allclose(high[0] - low[0], 2 * norm.ppf(0.95) * Y.std())
    with pytest.raises(ValueError, match="X must be within the box, found 1 rows beyond it"):
        found.sample_y([[5.0, 0.5]])
    found = GPClassifier("waves", progress=False).fit(X, Y > 100)
    np.testing.assert_array_equal(found.predict_proba([[5.0, 0.5]]), [[0.5, 0.5]])


def test_three_classes() -> None:
    """Each class has a latent GP; probabilities add up to one."""
    classes = np.array(["low", "middle", "high"])[np.digitize(F, [98, 105])]
    found = GPClassifier("waves", progress=False).fit(X, classes)
    assert list(found.classes_) == ["high", "low", "middle"] and found.score(X, classes) > 0.9
    probabilities = found.predict_proba(NEW)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert found.model_.num_latent_gps == 3


def test_nothing_to_learn() -> None:
    """Two thousand levels are not two thousand columns, and the report says that nothing helps."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=600), "shop": [f"s{k % 200}" for k in range(600)]})
    with pytest.warns(UserWarning, match="No candidate is clearly better than the mean of Y"):
        found = regressor("auto", seconds=8).fit(frame, rng.normal(size=600))
    assert found.report_.startswith("Nothing was learnt.")


def test_models_by_name() -> None:
    """Places by the names of their columns; the first of two candidates that suit."""
    rng = np.random.default_rng(0)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1, 1, 300))), rng.uniform(-180, 180, 300)
    targets = 10 * np.sin(np.radians(lat)) + rng.normal(size=300)
    frame = pl.DataFrame({"lon": lon, "lat": lat})
    found = regressor("harmonics").fit(frame, targets)
    assert found.score(frame, targets) > 0.9
    assert type(found.model_.kernel.kernel).__name__ == "GlobeMatern52"
    data = prepare(np.column_stack([lat, lon]), targets, inputs="degrees")
    named = names_for("globe", data, gaussian=True, grows=False)
    chosen = choose(data, None, 1, 0.0, names=named, races=False)
    assert chosen.name == "harmonics and neighbours" and not chosen.race.entries
    for gaussian, grows, names in (
        (True, True, ENDING),
        (False, True, ("neighbours",)),
        (True, False, ("exact", "all rows", *ENDING)),
    ):
        assert names_for("auto", data, gaussian=gaussian, grows=grows) == names


def test_text() -> None:
    """Text in an array, and in y of a regressor; numbers may be text."""
    levels = [f"R{k % 3}" for k in range(len(X))]
    table = np.column_stack([X.astype(object), levels])
    message = r"X must be numbers, .* the text 'R0'; pass a data frame .* GPRegressor\(categorical="
    for rows in (table, table.astype(str), table.tolist()):
        with pytest.raises(ValueError, match=message):
            regressor().fit(rows, Y)
    with pytest.raises(ValueError, match=r"X must be numbers, .* GPClassifier\(categorical="):
        GPClassifier().fit(table, Y > 100)
    for rows in (X, pd.DataFrame(X)):
        for targets in (levels, np.array(levels, object)):
            with pytest.raises(ValueError, match="y must be numbers, found the text 'R0'; GPClass"):
                regressor().fit(rows, targets)
    found = regressor().fit(X.astype(str).tolist(), Y)
    with pytest.raises(ValueError, match="X must be numbers, if it is an array"):
        found.predict(table)
    np.testing.assert_allclose(found.predict(X[:5]), regressor().fit(X, Y).predict(X[:5]))


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong, message in (
        ({"model": "best"}, "model must be 'auto' or 'exact' or"),
        ({"noise": "cauchy"}, "noise must be 'gaussian' or 'student'"),
        ({"seconds": 0}, "seconds must be"),
        ({"bounds": {0: (1, 0)}}, "bounds must have a lowest and a higher value"),
        ({"bounds": {7: (0, 1)}}, "bounds must have names or numbers of columns, found 7"),
        ({"model": "globe"}, "latitudes from -90 to 90"),
    ):
        with pytest.raises(ValueError, match=message):
            GPRegressor(progress=False).set_params(**wrong).fit(500 * X, Y)
    with pytest.raises(ValueError, match="model must be one for these rows, of 4 columns"):
        regressor("waves").fit(np.hstack([X, X]), Y)
    for method in (regressor().fit, regressor().partial_fit, GPClassifier().fit):
        with pytest.raises(TypeError, match="sample_weight must not .* a number of repetitions"):
            method(X, Y, sample_weight=np.ones(len(X)))
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    for name in ("base", "regressor"):
        monkeypatch.delitem(sys.modules, f"interdomain.estimators.{name}")
    with pytest.raises(
        ImportError, match=r"GPRegressor needs scikit-learn.*interdomain\[estimators\]"
    ):
        _ = idm.estimators.GPRegressor
