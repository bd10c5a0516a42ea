"""The part `groups`: a column of thousands of categories, and numbers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._lib.data import Array
from benchmarks._lib.mixed_tables import grouped
from benchmarks._lib.race import Rows
from benchmarks._lib.splits import seeded_rows
from benchmarks.estimators.judged import Rival, judged

NUMBERS, TESTED = 12, 10_000
DEVIATION, NOISE = 0.7, 0.5
"""The standard deviation of groups, and of noise."""
SIZES = {"numbers_2000": (60_000, 2_000), "numbers_10000": (100_000, 10_000)}
"""The numbers of rows and of levels."""
DATA = (*SIZES, "places_5000")
METHODS: dict[str, tuple[str, ...]] = {
    "numbers_2000": (
        *("auto", "effects", "harmonics", "neighbours"),
        *("trees", "gpboost_boosting", "gpboost_linear"),
    ),
    "numbers_10000": ("effects", "trees", "gpboost_boosting", "gpboost_linear"),
    "places_5000": ("neighbours", "auto", "trees", "gpboost_boosting"),
}


def configurations(short: bool) -> Iterator[dict[str, Any]]:
    for data in ("places_5000",) if short else DATA:
        for method in ("neighbours",) if short else METHODS[data]:
            rows = 2_000 if short else None
            yield {"data": data, "method": method, "rows": rows, "seconds": 60.0}


def made_groups(rows: int, levels: int) -> tuple[Rows, Rows]:
    """Twelve numbers and, in the last column, the group; 1% of the test rows are of new groups.

    The function has interactions of two and three of the first seven columns:
    ``sin(2 a) + b c + cos(2 d + e) + (f > 0) g / 2``.
    """
    rng, new = np.random.default_rng(0), max(levels // 100, 1)
    intercepts, parts = DEVIATION * rng.normal(size=levels + new), []
    for number, most in ((rows, levels), (TESTED, levels + new)):
        X, groups = rng.normal(size=(number, NUMBERS)), rng.integers(most, size=number)
        a, b, c, d, e, f, g = X.T[:7]
        function = np.sin(2 * a) + b * c + np.cos(2 * d + e) + 0.5 * (f > 0) * g
        y = function + intercepts[groups] + NOISE * rng.normal(size=number)
        parts.append((np.c_[X, groups], y[:, None]))
    return parts[0], parts[1]


def measured(
    *, data: str, method: str, rows: int | None, seconds: float, data_dir: str | None
) -> dict[str, Any]:
    (X, Y), test = grouped() if data == "places_5000" else made_groups(*SIZES[data])
    train = X[:rows], Y[:rows]
    levels = len(np.unique(train[0][:, -1]))
    found = {"rows": len(train[0]), "levels": levels}
    if method.startswith("gpboost"):
        importlib.import_module("gpboost")
        by = by_linear_model if method == "gpboost_linear" else by_boosting
        return {**found, **judged(lambda: by(train), test)}
    if method == "trees":
        importlib.import_module("sklearn.ensemble")
        return {**found, **judged(lambda: trees(train), test)}
    from interdomain.estimators import GPRegressor

    frames, y = [frame(rows) for rows in (train[0], test[0])], train[1][:, 0]
    regressor = GPRegressor(method, seconds=seconds, progress=False)
    return {**found, **judged(lambda: regressor.fit(frames[0], y), (frames[1], test[1]))}


def frame(X: Array) -> Any:
    """Rows as a data frame, with groups as strings."""
    import pandas as pd

    groups = [f"group {number:.0f}" for number in X[:, -1]]
    names = [f"x{k}" for k in range(X.shape[1] - 1)]
    return pd.DataFrame(X[:, :-1], columns=names).assign(group=groups)


def trees(train: Rows) -> Rival:
    """scikit-learn's boosting, with the mean of y of each group (`TargetEncoder`) as a column; the
    variance is that of the residuals of a tenth of the rows."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import TargetEncoder

    X, y = train[0], train[1][:, 0]
    encoded = (TargetEncoder(target_type="continuous", random_state=0), [X.shape[1] - 1])
    model = make_pipeline(
        make_column_transformer(encoded, remainder="passthrough"),
        HistGradientBoostingRegressor(random_state=0, max_iter=500, early_stopping=True),
    )
    fitted, apart = seeded_rows(len(X), 0)
    model.fit(X[fitted], y[fitted])
    deviation = np.sqrt(np.mean(np.square(y[apart] - model.predict(X[apart]))))
    return Rival(lambda new: (model.predict(new), np.full(len(new), deviation)))


def by_boosting(train: Rows) -> Rival:
    """GPBoost's trees with grouped intercepts, its defaults; a tenth of the rows decides after how
    many trees to stop, at most 1,000."""
    import gpboost as gpb

    X, groups, y = train[0][:, :-1], train[0][:, -1].astype(int), train[1][:, 0]
    fitted, apart = seeded_rows(len(X), 0)
    parameters = {"learning_rate": 0.1, "verbose": -1, "seed": 0}

    def trained(rows: Any, number: int, **options: Any) -> Any:
        intercepts = gpb.GPModel(group_data=groups[rows], likelihood="gaussian")
        if options:
            intercepts.set_prediction_data(group_data_pred=groups[apart])
        data = gpb.Dataset(X[rows], y[rows])
        if options:
            options["valid_sets"] = gpb.Dataset(X[apart], y[apart], reference=data)
        return gpb.train(parameters, data, number, gp_model=intercepts, **options)

    options = {"early_stopping_rounds": 10, "use_gp_model_for_validation": True}
    best = trained(fitted, 1_000, verbose_eval=False, **options).best_iteration
    model = trained(np.arange(len(X)), best)

    def at(new: Array) -> Any:
        found = model.predict(
            data=new[:, :-1],
            group_data_pred=new[:, -1].astype(int),
            predict_var=True,
            pred_latent=False,
        )
        return found["response_mean"], np.sqrt(found["response_var"])

    return Rival(at)


def by_linear_model(train: Rows) -> Rival:
    """GPBoost's grouped intercepts, with a mean that is linear in the numbers."""
    import gpboost as gpb

    X, y = train[0], train[1][:, 0]

    def columns(rows: Array) -> Array:
        return np.c_[np.ones(len(rows)), rows[:, :-1]]

    model = gpb.GPModel(group_data=X[:, -1].astype(int), likelihood="gaussian")
    model.fit(y=y, X=columns(X))

    def at(new: Array) -> Any:
        found = model.predict(
            group_data_pred=new[:, -1].astype(int),
            X_pred=columns(new),
            predict_var=True,
            predict_response=True,
        )
        return found["mu"], np.sqrt(found["var"])

    return Rival(at)
