"""The models for a table, their printed code, and the race between small models."""

from __future__ import annotations

import functools
import importlib
import inspect
import subprocess
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import create_autospec

import gpflow
import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm

import interdomain as idm
from interdomain.estimators import group_recipes, outputs, recipes, recommend
from interdomain.estimators.baseline import density_of_the_mean
from interdomain.estimators.candidates import candidates_for
from interdomain.estimators.prepared import prepare
from interdomain.estimators.race import Race, RaceEntry
from interdomain.models.vecchia_sgpr import choice
from interdomain.training import StopFit
from tests.estimators.frames import Frame, printed

ROWS = 120
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(ROWS, 3))
Y = np.sin(6 * X[:, :1]) * X[:, 1:2] + 0.1 * RNG.normal(size=(ROWS, 1))
LABELS = (Y > np.median(Y)).astype(float)
PIXELS = RNG.uniform(size=(ROWS, 36))
Bernoulli = gpflow.likelihoods.Bernoulli


PLACES = Frame(lon=360 * X[:, 0] - 180, Lat=np.degrees(np.arcsin(2 * X[:, 1] - 1)))
KINDS = np.array(["red", "green", "blue"], dtype=object)[np.arange(ROWS) % 3]
HOSTILE = '"); import os; os.abort() #'
MIXED = Frame({HOSTILE: X[:, 0], "kind": KINDS})

SHOPS = np.array([f"shop {k}" for k in range(15)], dtype=object)[np.arange(ROWS) % 15]
NOISE = np.linspace(0.01, 0.1, ROWS)
LABELLED = {
    "likelihood": Bernoulli(),
    "targets": outputs.labelled,
    "likelihood_code": "Bernoulli()",
}

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "table": (X, Y, {}),
    "maps": (X[:, :2], Y, {}),
    "globe": (PLACES, 50 + 9 * Y, {}),
    "classes": (X, LABELS, {"likelihood": Bernoulli()}),
    "images": (PIXELS, LABELS, {"image_shape": (6, 6), "likelihood": Bernoulli()}),
    "groups": (Frame(a=X[:, 0], shop=SHOPS, b=X[:, 1]), Y, {}),
    "noise": (X[:, :2], Y, {"noise_variance": NOISE, "bounds": {0: (0, 2), 1: (0, 1)}}),
    "labels": (X[:, :1], KINDS, LABELLED),
}

OF_TABLES = ("blocks", "harmonics with diagonal q", "harmonics with full q")
ENDING = ["exact", "waves", "neighbours", "effects", "harmonics"]
ENDING += ["effects and harmonics", "harmonics and neighbours"]
FIT = {
    "table": {*ENDING, *OF_TABLES, "orthogonal points"},
    "maps": {"exact", "waves", "splines", "neighbours", "effects", "blocks", "orthogonal points"},
    "globe": {"exact", "neighbours", "harmonics", "harmonics and neighbours"},
    "groups": {"exact", "waves", "splines", "neighbours", "effects"},
    "noise": {"waves", "splines", "neighbours"},
    "labels": {"all rows", "waves", "points", "orthogonal points", "blocks"},
    "classes": {"all rows", "waves", "harmonics", "effects", *OF_TABLES, "orthogonal points"},
    "images": {"patches", "orthogonal points", "points"},
}


@functools.cache
def prepared(case: str) -> Any:
    X, Y, arguments = CASES[case]
    return prepare(X, Y, **arguments)


def small(case: str) -> dict[str, Any]:
    return candidates_for(prepared(case), CASES[case][2].get("likelihood"), 20, {"steps": 3})


@pytest.mark.parametrize("case", CASES)
def test_which_fit(case: str) -> None:
    unweighted = {"points"} - ({"points"} if case in ("groups", "noise") else set())
    assert set(small(case)) == FIT[case] | unweighted
    assert case != "maps" or "num_splines=[20, 20]" in small(case)["splines"].code
    # Neighbours take most of the seconds beside groups, and are tried last.
    assert case != "groups" or list(small(case))[-1] == "neighbours"


def test_each_recipe_is_in_a_program() -> None:
    many = np.column_stack([np.arange(4_200.0), np.arange(4_200) // 2])
    many_found = candidates_for(prepare(many, many[:, :1], categorical=[1]), None, 20, {})
    programs = [one.code for found in [*map(small, CASES), many_found] for one in found.values()]
    for module in (recipes, group_recipes, outputs):
        for name, recipe in inspect.getmembers(module, inspect.isfunction):
            if recipe.__module__ == module.__name__ and "predictor" not in name:
                assert any(f"\ndef {name}(" in code for code in programs), name


def test_parameters_of_many_groups_are_those_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 40 levels, the part has all of them: the model is the trained model of all rows."""
    # One kernel takes half of the time of four, and is chosen by both fits.
    monkeypatch.setattr(choice, "KERNELS", {"Matern32": choice.KERNELS["Matern32"]})
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(size=(240, 2)), np.arange(240) % 40])
    targets = np.sin(6 * rows[:, :1]) + rng.normal(size=40)[rows[:, 2].astype(int), None]
    targets += 0.1 * rng.normal(size=targets.shape)
    model = group_recipes.neighbours_and_many_groups((rows, targets), [40], "euclidean")
    expected = group_recipes.neighbours_and_groups((rows, targets), [40], "euclidean")
    idm.fit(expected, options={"parts": "both"}, progress=False)
    for mine, other in zip(model.predict_y(rows[:9]), expected.predict_y(rows[:9]), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_wide_tables_and_large_ones() -> None:
    wide = np.random.default_rng(1).normal(size=(2_500, 55))
    found = candidates_for(prepare(wide, wide[:, :1]), None, 50, {})
    assert {"harmonics", "exact", "waves"}.isdisjoint(found)


def rows_of(X: Any, rows: Any) -> Any:
    """Rows of an array or of a frame."""
    return Frame({k: v[rows] for k, v in X.items()}) if isinstance(X, Frame) else X[rows]


def ran(case: str, name: str) -> None:
    """The script, as it is printed, leaves a model, and a function that predicts in units of Y."""
    X, Y, arguments = CASES[case]
    names = {"noise_variance", *({"likelihood"} if "targets" not in arguments else ())}
    passed = {key: value for key, value in arguments.items() if key in names}
    scope = printed(small(case)[name].code, X=X, Y=Y, **passed)
    assert scope["X"] is X and scope["Y"] is Y, name  # to be predicted at, as they were
    expected, variance = scope["model"].predict_y(prepared(case).X[:5])
    if case == "labels":
        probabilities = scope["predict"](X[:5])
        assert probabilities.shape == (5, 3)
        np.testing.assert_allclose(probabilities, expected / np.sum(expected, axis=1)[:, None])
        return
    given = "likelihood" in arguments
    center, unit = (0.0, 1.0) if given else (Y.mean(axis=0), Y.std(axis=0))
    for rows in (slice(5), slice(1)):  # a single row, too
        mean, deviation = scope["predict"](rows_of(X, rows))
        atol = 1e-7 * np.max(unit)
        np.testing.assert_allclose(mean, center + unit * expected[rows], atol=atol, err_msg=name)
        np.testing.assert_allclose(np.square(deviation), unit**2 * variance[rows], rtol=1e-5)
        assert np.all(deviation > 0)


@pytest.mark.parametrize("case", CASES)
def test_the_code_makes_a_model_and_trains_it(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By functions that take these arguments, and leave models as they are: training takes
    seconds."""

    def additive(data: Any, num_inducing: int, categorical: list[int]) -> Any:
        kernel = idm.tables.Additive.from_data(data[0], categorical=categorical)
        features = idm.tables.AdditiveFeatures.for_kernel(kernel, num_inducing)
        prior = idm.kernels.FiniteRank(kernel, features)
        return SimpleNamespace(model=idm.models.StructuredSGPR(data, prior, features))

    def eagerly(model: Any, X: Any, method: str, progress: bool) -> Any:
        return [np.asarray(part) for part in getattr(model, method)(X)]

    fit, fit_additive = idm.fit, idm.tables.fit_additive
    monkeypatch.setattr(idm, "predict_in_batches", eagerly)
    for name, candidate in small(case).items():
        trained = create_autospec(fit), create_autospec(fit_additive, side_effect=additive)
        monkeypatch.setattr(idm, "fit", trained[0])
        monkeypatch.setattr(idm.tables, "fit_additive", trained[1])
        ran(case, name)
        assert trained[candidate.entrant[1] is None].called


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "name"), [("table", "effects"), ("images", "patches"), ("globe", "harmonics")]
)
def test_the_code_runs_as_it_stands(case: str, name: str) -> None:
    """docs/which/tables.md has that of effects and harmonics."""
    ran(case, name)


@pytest.mark.slow
def test_a_program_runs_in_a_fresh_interpreter() -> None:
    rows = "import numpy\nX = numpy.random.default_rng(0).uniform(size=[120, 3])\nY = X[:, :1]\n"
    program = rows + small("table")["waves"].code + "assert predict(X)[0].shape == (120, 1)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_predictions_at_new_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales and levels are those of the training rows, whatever the new rows are."""
    candidate = candidates_for(prepare(MIXED, Y), None, 20, {"steps": 3})["waves"]
    fit = idm.fit
    monkeypatch.setattr(idm, "fit", lambda model: fit(model, steps=2, progress=False))
    scope = printed(candidate.code, X=MIXED, Y=Y)
    predict = scope["predict"]
    # Numbers of the columns by hand: levels in order, without the first one.
    by_hand = np.column_stack([X[:, 0], KINDS == "green", KINDS == "red"]).astype(float)
    scaled = (by_hand - by_hand.mean(axis=0)) / by_hand.std(axis=0)
    expected = Y.mean() + Y.std() * scope["model"].predict_y(scaled)[0]
    whole = predict(MIXED)[0]
    np.testing.assert_allclose(whole, expected, atol=1e-8)

    def at(rows: Any, **others: Any) -> Any:
        return predict(rows_of(Frame(MIXED | others), rows))[0]

    for rows in (KINDS != "green", KINDS == "blue", slice(7, 8), slice(50, 20, -1)):
        np.testing.assert_allclose(at(rows), whole[rows], atol=1e-8)
    swapped = Frame({name: MIXED[name][:4] for name in reversed(MIXED)})
    np.testing.assert_allclose(predict(swapped)[0], whole[:4], atol=1e-8)
    with pytest.warns(UserWarning, match=r"1 of 2 rows have levels of column 'kind'.*\['grey'\]"):
        unknown = at(slice(2), kind=np.array(["grey", "green"], dtype=object))
    scaled[0, 1:] = 0  # the mean of the columns of a level
    expected = Y.mean() + Y.std() * scope["model"].predict_y(scaled[:2])[0]
    np.testing.assert_allclose(unknown, expected, atol=1e-8)
    for wrong, message in [
        (X, "X must have 2 columns, those of the training rows, found 3"),
        (Frame(kind=KINDS), r"the 2 columns of the training rows.*import os.* are missing"),
        (Frame(MIXED, more=KINDS), r"found 3: \[\] are missing, and \['more'\] are others"),
        (Frame(MIXED, kind=X[:, 0] * np.nan), "column 'kind' must not have missing"),
        (Frame({**MIXED, HOSTILE: KINDS}), "column '.*' must be real numbers: a column"),
    ]:
        with pytest.raises(ValueError, match=message):
            predict(wrong)


def test_no_name_of_a_column_is_evaluated() -> None:
    """Names that are no literals, that are equal, or that are code."""

    class ByPlace:
        def __getitem__(self, key: Any) -> Any:
            return X[key]

    names = [np.datetime64("2020-01-01"), float("nan"), HOSTILE]
    twice: list[Any] = ["a", "a", ("__import__('os').abort()",)]
    for frame, found in (
        (Frame(zip(names, X.T, strict=True)), names),
        (SimpleNamespace(columns=twice, iloc=ByPlace()), twice[2:]),
    ):
        data = prepare(frame, Y)
        np.testing.assert_array_equal(data.X, prepare(X, Y).X)
        scope = printed(data.code, **vars(outputs), X=frame, Y=Y)
        np.testing.assert_array_equal(scope["X_train"], data.X)
        for candidate in candidates_for(data, None, 20, {"steps": 3}).values():
            assert data.code in candidate.code
            assert not any(str(name) in candidate.code for name in found)


module = importlib.import_module("interdomain.estimators.recommend")  # a function has its name


def test_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of waves, and of an exact GP that breaks; there is no time for others."""

    def broken(data: Any) -> Any:
        """A model that breaks."""
        raise RuntimeError("a kernel broke")

    monkeypatch.setattr(recipes, "exact", broken)
    hour = [0.0]
    monkeypatch.setitem(module.CLOCKS, "wall", lambda: hour[0])

    def race(models: Any, *arguments: Any, **options: Any) -> Any:
        hour[0] += 99.0 * ("waves" in models)
        return idm.race(models, *arguments, **options)

    monkeypatch.setattr(module, "race", race)
    found = recommend(X, Y, seconds=30, clock="wall", progress=False)
    assert list(found.race.entries) == ["exact", "waves"]
    assert found.name == "waves" and found.seconds == 99
    text = str(found)
    assert text.startswith("Take waves: Fourier features of a box") and found.code in text
    assert "Not tried, for want of time: " in text and str(found.race) in text
    assert "failed: RuntimeError: a kernel broke" in text


def raced(
    densities: dict[str, float], slow: str = "", **arguments: Any
) -> tuple[Any, list[dict[str, Any]]]:
    """A recommendation after races that had these results, and what was asked of them.

    :param slow: A model that took a minute, and not a second.
    """
    asked: list[dict[str, Any]] = []

    def race(models: Any, data: Any, seconds: Any, **options: Any) -> Any:
        ((name, model),) = models.items()
        asked.append(dict(name=name, model=model, rows=data[0], seconds=seconds[0], **options))
        point = (60.0 if name == slow else 1.0, densities.get(name, -9.0), 0.5)
        return Race({name: RaceEntry(None, [point], None)}, tuple(seconds), "cpu", 100, 20)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "race", race)
        return recommend(**{"X": X, "Y": Y, "progress": False, **arguments}), asked


def test_the_winner_is_the_best_and_the_first_of_those_that_tie() -> None:
    densities = {"waves": 0.5, "harmonics": 0.501, "effects": 0.48, "points": 0.495}
    found, asked = raced(densities)
    assert found.name == "waves"
    # Those that end by themselves come first.
    names = [one["name"] for one in asked]
    assert names[:7] == ENDING and names[7] == "points"
    shares = [one["seconds"] for one in asked[7:]]  # of those that wait, each has the same
    np.testing.assert_allclose(shares, 60 / np.arange(len(shares) + 1, 1, -1), rtol=0.1)
    assert all("steps" not in one["model"][1] for one in asked[7:])
    assert raced({**densities, "harmonics": 0.51})[0].name == "harmonics"
    assert raced({"points": float("nan"), "effects": -20.0})[0].name != "points"


def test_a_winner_has_to_exceed_the_mean_of_y_clearly() -> None:
    baseline = -0.5 * np.log(2 * np.pi * np.e)  # of standardised Y, but for the draw of rows
    found, asked = raced({"waves": baseline + 0.05})
    assert found.name == "waves" and not found.learnt
    assert str(found).startswith("Nothing was learnt. The best was waves")
    assert "No candidate is clearly better than the mean of Y: on 24 held-out" in found.sentences[0]
    learnt, _ = raced({"waves": baseline + 0.5})
    assert learnt.learnt and str(learnt).startswith("Take waves") and not learnt.sentences
    longest = {one["name"]: one["seconds"] for one in asked}
    assert longest["exact"] == 15 and longest["waves"] > 50  # of 60 seconds


def test_the_density_of_a_constant() -> None:
    counts, labels = RNG.poisson(3.0, size=(200, 1)).astype(float), LABELS[:, :1]
    rows = np.zeros([200, 2])
    for likelihood, Y, constant in (
        (gpflow.likelihoods.Poisson(), counts, lambda Y, m: Y * np.log(m) - m - gammaln(Y + 1)),
        (Bernoulli(), labels, lambda Y, p: Y * np.log(p) + (1 - Y) * np.log(1 - p)),
        (None, counts, lambda Y, m: norm.logpdf(Y, m, np.std(counts[:100]))),
    ):
        train, rest = (rows[:100], Y[:100]), (rows[: len(Y) - 100], Y[100:])
        expected = np.mean(constant(rest[1], np.mean(train[1])))
        density = density_of_the_mean(likelihood, train, rest)
        np.testing.assert_allclose(density, expected, rtol=1e-4)


def test_twenty_rows_suffice() -> None:
    assert {len(one["rows"]) for one in raced({}, X=X[:20], Y=Y[:20])[1]} == {16}
    failing = {"failing": lambda data: 1 / 0}  # a race of given held-out rows takes any number
    found = idm.race(failing, (X[:3], Y[:3]), 1, validation_data=(X, Y), progress=False)
    assert found.num_rows == 3 and "ZeroDivisionError" in str(found.entries["failing"].error)


def test_neighbours_that_win_are_named_with_harmonics_which_there_is_no_time_to_try() -> None:
    densities = {"neighbours": 0.5, "harmonics and neighbours": 0.4}
    assert raced(densities)[0].name == "neighbours"
    found, asked = raced(densities, "neighbours")
    assert found.name == "harmonics and neighbours" not in [one["name"] for one in asked]
    assert "There was no time" in found.sentences[0]
    assert raced(densities, "neighbours", X=X[:, :2])[0].name == "neighbours"


def test_passes_end_with_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes of a DualSVGP end with the seconds, before the bound is at its optimum."""
    hour = [0.0]
    monkeypatch.setitem(module.CLOCKS, "cpu", lambda: hour[0])
    _, asked = raced({}, seconds=30, Y=LABELS, likelihood=Bernoulli())
    trained = {one["name"]: one["model"][1] for one in asked}
    assert "callbacks" not in trained["points"]
    (stop,) = trained["waves"]["callbacks"]
    stop(1, None)
    hour[0] = 29.0
    with pytest.raises(StopFit):
        stop(2, None)


def test_the_same_seed_draws_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    runs = raced({}), raced({}, progress=True), raced({}, seed=1)
    assert "recommend" in capsys.readouterr().err
    for one, same, another in zip(*(asked for _, asked in runs), strict=True):
        np.testing.assert_array_equal(one["rows"], same["rows"])
        assert np.any(one["rows"] != another["rows"])
        assert (one["seed"], another["seed"], one["clock"]) == (0, 1, "cpu")


def test_columns_that_are_constant_in_few_rows_are_left_out_of_small_versions() -> None:
    rare = np.zeros([8_000, 1])
    rare[0] = 1.0
    rows = np.hstack([RNG.uniform(size=(8_000, 2)), rare])
    _, asked = raced({}, X=rows, Y=rows[:, :1] ** 2, seed=2)
    near = {one["name"]: one["rows"].shape for one in asked if "neighbours" in one["name"]}
    assert set(near.values()) == {(6_400, 2)}
    assert {one["rows"].shape for one in asked if one["name"] not in near} == {(3_000, 2)}


def test_no_time_for_any_and_wrong_arguments() -> None:
    found = recommend(X, LABELS, seconds=1e-9, progress=False)
    assert not found.race.entries and found.name == "exact"
    assert "No model was ready within 1e-09 s" in str(found)
    assert any("likelihood=gpflow.likelihoods.Bernoulli()" in one for one in found.sentences)
    with pytest.raises(ValueError, match="seconds must be positive, found 0"):
        recommend(X, Y, seconds=0)
    with pytest.raises(ValueError, match="likelihood must be a GPflow likelihood"):
        recommend(X, Y, likelihood="Bernoulli")
