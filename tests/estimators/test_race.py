"""``race``: models on one clock, which here advances by a step for each time it is read."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.estimators import race
from interdomain.estimators.race import Race, RaceEntry

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(80, 1))
Y = np.sin(4 * X) + 0.1 * RNG.normal(size=X.shape)
LABELS = (Y > 0).astype(float)


def points(data: Any, likelihood: Any = gpflow.likelihoods.Gaussian) -> Any:
    kernel = gpflow.kernels.Matern52(lengthscales=0.5)
    return gpflow.models.SVGP(kernel, likelihood(), data[0][:8].copy(), num_data=len(data[0]))


def exact(data: Any) -> Any:
    return gpflow.models.GPR(data, gpflow.kernels.Matern52(lengthscales=0.5), noise_variance=0.1)


def waves(data: Any, likelihood: Any = None) -> Any:
    kernel = idm.kernels.Periodized.from_data(gpflow.kernels.Matern52(), data[0], margin=1.5)
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 9)
    if likelihood is None:
        return idm.models.StructuredSGPR(data, kernel, features, noise_variance=0.1)
    return idm.models.DualSVGP(data, kernel, likelihood, features)


def trained(data: Any) -> Any:
    model = exact(data)
    idm.fit(model, steps=3, progress=False)
    return model


def failing(data: Any) -> Any:
    raise RuntimeError("no such model\nwith a second line")


def diverging(data: Any) -> Any:
    model = points(data)
    model.kernel.variance.assign(1e300)
    return model


@pytest.fixture(scope="module")
def clock() -> Iterator[None]:
    """A second passes between two looks at a clock, a thousand of all processors together."""
    module = sys.modules["interdomain.estimators.race"]
    ticks = itertools.count()
    clocks = {"wall": lambda: float(next(ticks)), "cpu": lambda: 1000.0 * next(ticks)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CLOCKS", clocks)
        yield


@pytest.mark.slow
def test_a_race_of_all_kinds_of_models(clock: None) -> None:
    models = {
        "points": points,
        "exact": (exact, {"steps": 3}),
        "waves": waves,
        "trained": (trained, None),
        "failing": failing,
        "diverging": diverging,
        "nothing": lambda _: "a text",
    }
    found = race(models, (X, Y), [4, 9, 16], progress=False)
    held_out = np.random.default_rng(0).permutation(80)[:8]
    for name in ("points", "exact", "waves", "trained"):
        entry = found.entries[name]
        assert entry.error is None
        seconds = [point[0] for point in entry.trace]
        assert seconds == sorted(set(seconds))
        densities = entry.model.predict_log_density((X[held_out], Y[held_out]))
        means, _ = entry.model.predict_y(X[held_out])
        _, density, rmse = entry.trace[-1]
        assert density == pytest.approx(float(np.mean(densities)), abs=1e-8), name
        errors = np.asarray(means) - Y[held_out]
        assert rmse == pytest.approx(float(np.sqrt(np.mean(errors**2))), abs=1e-8), name
    # Points are evaluated at the first step after each time, the others when all was done.
    for point, seconds in zip(found.entries["points"].trace, found.times, strict=True):
        assert seconds <= point[0] <= seconds + 3
    assert len(found.entries["waves"].trace) == 1 and len(found.entries["exact"].trace) < 3
    # Failures are in the table, with their reason.
    assert found.entries["failing"].error == "RuntimeError: no such model"
    assert found.entries["failing"].model is None and not found.entries["failing"].trace
    assert found.entries["diverging"].error is not None
    assert "must be a GPflow model, found str" in (found.entries["nothing"].error or "")
    assert set(found.ranking) == {"points", "exact", "waves", "trained"}
    table = str(found)
    assert "72 rows, 8 held out: their mean log density after seconds of wall time" in table
    assert "failed: RuntimeError: no such model" in table
    lines = [line.split()[0] for line in table.splitlines()[2:]]
    assert lines[:4] == list(found.ranking) and set(lines) == set(found.entries)


def test_the_best_in_time_is_first() -> None:
    """Those that are ready too late come last."""
    traces = {
        "late": [(11.0, 9.0, 0.1)],
        "second": [(5.0, 3.0, 0.1), (10.0, 1.0, 0.1), (12.0, 8.0, 0.1)],
        "first": [(10.4, 2.0, 0.1)],
        "never": [],
    }
    entries = {name: RaceEntry(None, trace, None) for name, trace in traces.items()}
    assert Race(entries, (5.0, 10.0), "wall", 9, 2).ranking == ("first", "second", "late")


def test_each_entry_says_its_own_rows() -> None:
    entries = {
        "few": RaceEntry(None, [(1.0, 2.0, 0.1)], None, 3_000),
        "many": RaceEntry(None, [(1.0, 1.0, 0.1)], None, 40_000),
        "broken": RaceEntry(None, [], "RuntimeError: no", 3_000),
    }
    head, _, few, many, broken = str(Race(entries, (5.0,), "wall", 3_000, 7)).splitlines()
    assert head.startswith("3,000 to 40,000 rows, 7 held out: their mean log density")
    assert few.split()[:2] == ["few", "3,000"] and many.split()[:2] == ["many", "40,000"]
    assert broken.split()[:3] == ["broken", "3,000", "failed:"]


def test_rows_that_are_given_and_processor_seconds(clock: None) -> None:
    """A classifier by passes, compared on other rows; the data are all trained with."""
    bernoulli = gpflow.likelihoods.Bernoulli
    models = {"waves": (lambda data: waves(data, bernoulli()), {"steps": 2})}
    others = X[:10] + 0.01, LABELS[:10]
    found = race(models, (X, LABELS), 900, validation_data=others, clock="cpu", progress=False)
    entry = found.entries["waves"]
    assert (found.num_rows, found.num_held_out) == (80, 10)
    assert entry.error is None and entry.trace[0][0] > 945  # it is late, and there all the same
    density = float(np.mean(entry.model.predict_log_density(others)))
    assert entry.trace[-1][1] == pytest.approx(density, abs=1e-8)
    assert "seconds of the processors" in str(found) and found.ranking == ("waves",)


def test_wrong_arguments() -> None:
    data, few = (X, Y), (X[:5], Y[:5])
    no_dict, no_pair = "models must be a dict of one or more functions", r"\['a'\] must be a "
    for models, rows, seconds, message in [
        ({"a": exact(data)}, data, 1, no_pair + "function, found"),
        ({"exact": exact}, few, 1, "data: X must have 20 rows or more, found 5; with so few"),
        *((models, data, 1, no_dict) for models in ({}, [], [exact], exact)),
        *(
            ({"a": (exact, *more)}, data, 1, no_pair + "(function|pair)")
            for more in ((), (3,), ({}, {}))
        ),
        ({"a": (None, {})}, data, 1, no_pair + "function"),
        ({"exact": exact}, X, 1, r"data must be a pair \(X, Y\), found a "),
        ({"exact": exact}, (X, Y, Y), 1, r"data must be a pair \(X, Y\), found a "),
        ({"exact": exact}, data, [], "seconds must be a number or a list of numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            race(models, rows, seconds, progress=False)  # type: ignore[arg-type]
