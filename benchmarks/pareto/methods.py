"""The compared models: how each is trained, and on which data sets it runs.

Add a model to `METHODS`; a model of ours also needs a colour in `pictures.COLOURS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gpflow

import interdomain as idm
from benchmarks._lib import race
from benchmarks._lib.prediction import gaussian_errors
from benchmarks._lib.race import Rows
from benchmarks._lib.runner import Entries
from benchmarks._lib.standard_sets import CLASSES, DATA, IMAGES, TWO_COLUMNS
from benchmarks._lib.table_models import boosting
from benchmarks.pareto.gpytorch_side import trained
from benchmarks.pareto.rivals import equispaced_fourier, trees_with_student_t
from interdomain.estimators.candidates import STEPS, candidates_for
from interdomain.estimators.prepared import checked_likelihood, prepare
from interdomain.estimators.regressor import student_noise

ROWS_EXACT = 2_000
FEATURES_OF_COLUMNS = 100
SECONDS_TO_RECOMMEND = 60.0


@dataclass(frozen=True)
class Task:
    """The arguments of a method."""

    method: str
    data: str
    train: Rows
    held_out: Rows
    seconds: Sequence[float]
    num_inducing: int | None
    """The number of inducing variables of a short run, in place of the method's own number."""

    @property
    def classes(self) -> bool:
        return self.data in CLASSES

    def described(self) -> dict[str, Any]:
        """The arguments of `recommend` in addition to the rows."""
        return {
            "likelihood": gpflow.likelihoods.Bernoulli() if self.classes else None,
            "image_shape": (28, 28) if self.data in IMAGES else None,
        }


@dataclass(frozen=True)
class Method:
    """The training function of a model, and its data sets."""

    train: Callable[[Task], Entries]
    data: Collection[str]
    ours: bool = True


ANYTHING = frozenset(DATA)
COLUMNS = ANYTHING - set(IMAGES)
NUMBERS = ANYTHING - set(CLASSES)
"""Sets whose targets are numbers, not classes."""
WIDE = COLUMNS - set(TWO_COLUMNS)
"""Tables of three columns or more: on two columns waves and splines are in place of harmonics."""
MAPS_OF_NUMBERS = NUMBERS & set(TWO_COLUMNS)
FEW_ROWS = frozenset({"kin8nm", "power"})
"""Sets on which GPBoost ends; on others it has not ended after 150 to 900 s (`neighbours`)."""


def candidate(
    kind: str, num_inducing: int = 500, noise: Callable[[], Any] | None = None, **training: Any
) -> Callable[[Task], Entries]:
    """The candidate of `recommend` with this name, trained by `race`.

    :param noise: makes the likelihood, in place of that of the data.
    :param training: arguments of `fit` to replace.
    """

    def train(task: Task) -> Entries:
        started = time.process_time()
        size = task.num_inducing or num_inducing
        described = task.described()
        likelihood = checked_likelihood(noise() if noise else described.get("likelihood"))
        data = prepare(*task.train, likelihood, described.get("image_shape"))
        found = candidates_for(data, likelihood, size, {"steps": STEPS}).get(kind)
        if found is None:
            return {"trace": [], "error": "does not fit"}
        build, arguments = found.entrant
        if "steps" in (arguments or {}):  # the times of the race end it, not a number of steps
            arguments = {k: v for k, v in arguments.items() if k != "steps"} | training
        prepared = time.process_time() - started
        return {**raced(task, (build, arguments)), "choosing_seconds": prepared}

    return train


def exact(task: Task) -> Entries:
    """An exact GP on few rows."""
    X, Y = task.train
    few = replace(task, train=(X[:ROWS_EXACT], Y[:ROWS_EXACT]))
    return {**candidate("exact")(few), "num_rows": len(few.train[0])}


def effects_of_columns(task: Task) -> Entries:
    """An additive model with few features, without pairs."""

    def build(rows: Rows) -> Any:
        return idm.tables.fit_additive(
            rows, FEATURES_OF_COLUMNS, effects="main", progress=False
        ).model

    return raced(task, (build, None))


def boosted_trees(task: Task) -> Entries:
    (point,) = boosting(task.train, task.held_out, 0, clock=time.process_time)["trace"]
    return {
        "trace": [
            {"seconds": point["seconds"], "log_density": -point["nll"], "rmse": point["rmse"]}
        ]
    }


def by_gpboost(task: Task) -> Entries:
    """GPBoost's Vecchia approximation, as in `neighbours`: one point, at its end."""
    X_test, Y_test = task.held_out
    started = time.process_time()
    options = {"gp_approx": "vecchia", "num_neighbors": 20}
    model = race.gpboost(task.train, likelihood="gaussian", **options)
    seconds = time.process_time() - started
    found = model.predict(gp_coords_pred=X_test, predict_var=True, predict_response=True)
    errors = gaussian_errors(Y_test, *(found[name][:, None] for name in ("mu", "var")))
    point = {"seconds": seconds, "log_density": -errors["nll"], "rmse": errors["rmse"]}
    return {"trace": [point], "error": None}


def by_gpytorch(task: Task) -> Entries:
    size = task.num_inducing or 500
    return trained(task.train, task.held_out, size, task.seconds, classes=task.classes)


def recommended(task: Task, limit: float = SECONDS_TO_RECOMMEND) -> Entries:
    """The choice of `recommend`, and the predictions of the small versions."""
    found = idm.recommend(*task.train, seconds=limit, **task.described(), progress=False)
    entries = found.race.entries
    return {
        "trace": [],
        "named": found.name,
        "seconds": found.seconds,
        "tried": {
            name: entry.trace[-1][1] if entry.trace else entry.error
            for name, entry in entries.items()
        },
        "not_tried": [name for name in found.candidates if name not in entries],
    }


def raced(task: Task, entrant: Any) -> Entries:
    """The errors of a model on the test rows at the budgets."""
    found = idm.race(
        {task.method: entrant},
        task.train,
        list(task.seconds),
        validation_data=task.held_out,
        clock="cpu",
        progress=False,
    )
    entry = found.entries[task.method]
    return {
        "trace": [
            dict(zip(("seconds", "log_density", "rmse"), point, strict=True))
            for point in entry.trace
        ],
        "error": entry.error,
    }


GPYTORCH, GPBOOST = "gpytorch_500", "gpboost_20"
ADAM_ALONE = candidate("points", optimizer=(None, 0.01))

METHODS = {
    "svgp_500": Method(candidate("points"), ANYTHING, ours=False),
    "svgp_200": Method(candidate("points", 200), ANYTHING, ours=False),
    "svgp_100": Method(candidate("points", 100), ANYTHING, ours=False),
    "svgp_1000": Method(candidate("points", 1_000), ANYTHING, ours=False),
    "svgp_500_adam": Method(ADAM_ALONE, ANYTHING, ours=False),
    "harmonics": Method(candidate("harmonics"), WIDE),
    "effects": Method(candidate("effects"), COLUMNS),
    "waves": Method(candidate("waves"), frozenset(TWO_COLUMNS)),
    "patches": Method(candidate("patches"), frozenset(IMAGES)),
    "splines": Method(candidate("splines"), MAPS_OF_NUMBERS),
    "neighbours": Method(candidate("neighbours"), NUMBERS),
    "neighbours_t": Method(candidate("neighbours", noise=student_noise), NUMBERS),
    "effects and harmonics": Method(candidate("effects and harmonics"), WIDE),
    "harmonics with diagonal q": Method(candidate("harmonics with diagonal q"), WIDE),
    "blocks": Method(candidate("blocks"), COLUMNS),
    "orthogonal points": Method(candidate("orthogonal points"), ANYTHING),
    "harmonics with full q": Method(candidate("harmonics with full q"), WIDE),
    "harmonics and neighbours": Method(candidate("harmonics and neighbours"), WIDE),
    "harmonics_200": Method(candidate("harmonics", 200), WIDE),
    "effects_200": Method(candidate("effects", 200), COLUMNS),
    "orthogonal points_200": Method(candidate("orthogonal points", 200), ANYTHING),
    "orthogonal points_100": Method(candidate("orthogonal points", 100), ANYTHING),
    "main effects": Method(effects_of_columns, NUMBERS),
    GPYTORCH: Method(by_gpytorch, ANYTHING, ours=False),
    GPBOOST: Method(by_gpboost, FEW_ROWS, ours=False),
    "exact": Method(exact, NUMBERS, ours=False),
    "boosting": Method(boosted_trees, NUMBERS, ours=False),
    "boosting_t": Method(
        lambda task: trees_with_student_t(task.train, task.held_out), NUMBERS, ours=False
    ),
    "equispaced waves": Method(
        lambda task: equispaced_fourier(task.train, task.held_out), MAPS_OF_NUMBERS, ours=False
    ),
    "recommend": Method(recommended, ANYTHING, ours=False),
}
"""Methods in the order in which they run."""

OURS = tuple(name for name, method in METHODS.items() if method.ours)
