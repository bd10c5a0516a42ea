"""What others predict: GPBoost, GPyTorch, trees, interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._lib import race
from benchmarks._lib.data import Array
from benchmarks._lib.splits import seeded_rows
from benchmarks._lib.table_models import boosted
from benchmarks.neighbours.data_sets import Task
from benchmarks.neighbours.predicted import Predicted


def gpboost(task: Task, **arguments: Any) -> Predicted:
    """GPBoost's neighbours, by the places alone where there are groups."""
    (X, Y), new = task.train, task.test[0]
    if task.data == "groups":
        X, new = X[:, :2], new[:, :2]
    model = race.gpboost((X, Y), likelihood="gaussian", **arguments)
    predicted = model.predict(gp_coords_pred=new, predict_var=True, predict_response=True)
    return Predicted(predicted["mu"], predicted["var"])


def gpboost_groups(task: Task) -> Predicted:
    """GPBoost's random intercepts of the groups, the last column, and a constant."""
    import gpboost as gpb

    (X, Y), (new, _) = task.train, task.test
    model = gpb.GPModel(group_data=X[:, 2].astype(int), likelihood="gaussian")
    model.fit(y=Y[:, 0], X=np.ones((len(X), 1)))
    predicted = model.predict(
        group_data_pred=new[:, 2].astype(int),
        X_pred=np.ones((len(new), 1)),
        predict_var=True,
        predict_response=True,
    )
    return Predicted(predicted["mu"], predicted["var"])


def gpytorch(task: Task) -> Predicted:
    from benchmarks.neighbours.gpytorch_side import trained
    from benchmarks.neighbours.methods import first_lengthscale

    first = first_lengthscale(task.train[0].shape[1])
    mean, variance, steps = trained(task.train, task.test[0], first)
    return Predicted(mean, variance, None, {"parts": f"{steps} steps"})


def trees(task: Task) -> Predicted:
    model, variance = boosted(task.train, 0, max_iter=500, early_stopping=True)
    return Predicted(model.predict(task.test[0]), np.full(len(task.test[0]), variance))


def trees_t(task: Task) -> Predicted:
    """Trees, and the Student-t density that suits the residuals of a tenth of the rows best."""
    from scipy.stats import t

    model, _ = boosted(task.train, 0, max_iter=500, early_stopping=True)
    (X, Y), (_, apart) = task.train, seeded_rows(len(task.train[0]), 0)
    residuals = Y[apart, 0] - model.predict(X[apart])
    freedom, _, scale = t.fit(residuals, floc=0.0)
    mean = model.predict(task.test[0])
    more = {"parts": f"{freedom:.1f} degrees"}
    return Predicted(mean, np.zeros_like(mean), (float(scale), float(freedom)), more)


def task_method(predict: Callable[[Array, Array, Array], tuple[Array, Array]]) -> Any:
    """A method of `race` that takes rows, as a method of a task."""
    return lambda task: Predicted(*predict(*task.train, task.test[0]))
