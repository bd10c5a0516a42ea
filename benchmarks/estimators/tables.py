"""The part `tables`: sets of `pareto` and folds of `neighbours`, ours beside others."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks._lib import race
from benchmarks._lib.data import Array, source_of
from benchmarks._lib.mixed_tables import rows_of_fold
from benchmarks._lib.race import Rows
from benchmarks._lib.results import RESULTS_FOLDER, ResultFile, runs
from benchmarks._lib.standard_sets import CLASSES, IMAGES, MADE, rows_of
from benchmarks._lib.standard_sets import DATA as STANDARD
from benchmarks._lib.table_models import boosted
from benchmarks.estimators.judged import Rival, judged, likelihood_density

FOLDS = ("folds_kin8nm", "folds_power", "folds_protein")
DATA = (*(data for data in STANDARD if data not in IMAGES), *FOLDS)
HEAVY = ("keggdirected", "flights")
"""Sets whose noise has heavy or long tails."""
STORED = {
    **{name: name for name in ("kin8nm", "power", "protein", "keggdirected", "beijing_pm25")},
    **{name: f"folds_{name}" for name in ("tetouan", "precipitation")},
    **{name: name for name in FOLDS},
    "terrain": "terrain",
}
"""Sets on which `neighbours` has GPBoost's records, by their names there."""
METHODS = ("auto", "student", "trees", "sklearn_gp", "gpboost")
LIBRARIES = {"trees": "sklearn.ensemble", "gpboost": "gpboost"}
LIBRARIES["sklearn_gp"] = "sklearn.gaussian_process"
"""What others import; imports are not on the clock."""
MOST_TESTED, FEW, FEW_OF_CLASSES = 10_000, 2_000, 1_000
BOOSTING = {"max_iter": 500, "early_stopping": True}


def configurations(short: bool, data_dir: str | None) -> Iterator[dict[str, Any]]:
    """Student-t noise where tails are heavy, GPBoost where `neighbours` has no record."""
    for method in ("auto", "trees") if short else METHODS:
        for data in ("terrain",) if short else DATA:
            if method == "student" and data not in HEAVY:
                continue
            if method == "gpboost" and data in STORED:
                continue
            yield {
                "data": data,
                "method": method,
                "rows": 500 if short else None,
                "seconds": 5.0 if short else 60.0,
                "source": "libraries" if data in MADE else source_of(data_dir),
            }


def stored_by_neighbours() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """GPBoost's records of `neighbours`, as a configuration and a result of this part."""
    found = {}
    for run, result in runs(ResultFile(RESULTS_FOLDER / "neighbours.jsonl").records()):
        if run["method"] == "gpboost_20" and run.get("fold") in (None, 0):
            found[run["data"]] = result
    for data, name in STORED.items():
        if name in found:
            result = dict(found[name])
            errors = {
                "in_90": result.get("coverage"),
                "fit_cpu": result.get("cpu_seconds"),
                "predict_cpu": None,
            }
            yield {"data": data, "method": "gpboost", "rows": None}, result | errors


def rows_and_test_rows(data: str, data_dir: str | None, rows: int | None) -> tuple[Rows, Rows]:
    """In an order drawn at random; test rows are the first 10,000."""
    if data in FOLDS:
        (X, Y), (X_test, Y_test) = rows_of_fold(data.removeprefix("folds_"), data_dir, 0)
    else:
        (X, Y), (X_test, Y_test) = rows_of(data, data_dir)
    order = np.random.default_rng(0).permutation(len(X))[:rows]
    return (X[order], Y[order]), (X_test[:MOST_TESTED], Y_test[:MOST_TESTED])


def measured(
    *, data: str, method: str, rows: int | None, seconds: float, data_dir: str | None
) -> dict[str, Any]:
    """One model on one set."""
    train, test = rows_and_test_rows(data, data_dir, rows)
    importlib.import_module(LIBRARIES.get(method, "interdomain.estimators"))
    classes, kept = data in CLASSES, list[Any]()

    def fit() -> Any:
        kept.append(fitted(data, method, train, seconds))
        return kept[0]

    found = {"rows": len(train[0]), "columns": train[0].shape[1]}
    found |= judged(fit, test, classes=classes)
    if method == "student":
        found |= likelihood_density(kept[0], train, test)
    return found


def fitted(data: str, method: str, train: Rows, seconds: float) -> Any:
    """A model by name; estimators have `seconds` for their choice."""
    classes = data in CLASSES
    if method == "trees":
        return trees(train, classes=classes)
    if method == "sklearn_gp":
        return by_scikit_learn(train, classes=classes)
    if method == "gpboost":
        return by_gpboost(train, classes=classes)
    from interdomain.estimators import GPClassifier, GPRegressor

    X, y = train[0], train[1][:, 0]
    if classes:
        return GPClassifier(seconds=seconds, progress=False).fit(X, y)
    inputs = "degrees" if data == "precipitation" else None
    noise = "student" if method == "student" else "gaussian"
    return GPRegressor(seconds=seconds, noise=noise, inputs=inputs, progress=False).fit(X, y)


def trees(train: Rows, *, classes: bool) -> Any:
    """scikit-learn's boosting; the variance is that of the residuals of a tenth of the rows."""
    if classes:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(random_state=0, **BOOSTING).fit(
            train[0], train[1][:, 0]
        )
    model, variance = boosted(train, 0, **BOOSTING)
    return Rival(lambda X: (model.predict(X), np.full(len(X), variance**0.5)))


def by_scikit_learn(train: Rows, *, classes: bool) -> Any:
    """scikit-learn's GP with a Matern-3/2 that has a lengthscale for each column, on a few of the
    rows, with its own optimizer from its first values."""
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    few = FEW_OF_CLASSES if classes else FEW
    X, y = train[0][:few], train[1][:few, 0]  # in an order drawn at random
    kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), (1e-2, 1e3), nu=1.5)
    if classes:
        model = GaussianProcessClassifier(kernel, random_state=0)
    else:
        model = GaussianProcessRegressor(kernel + WhiteKernel(0.1, (1e-6, 1e1)), random_state=0)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def by_gpboost(train: Rows, *, classes: bool) -> Rival:
    """GPBoost's Vecchia approximation with 20 neighbours and its Matern-3/2 of a lengthscale for
    each column."""
    likelihood = "bernoulli_probit" if classes else "gaussian"
    model = race.gpboost(train, likelihood=likelihood, gp_approx="vecchia", num_neighbors=20)

    def at(X: Array) -> Any:
        found = model.predict(gp_coords_pred=X, predict_var=True, predict_response=True)
        return found["mu"] if classes else (found["mu"], np.sqrt(found["var"]))

    return Rival(at)
