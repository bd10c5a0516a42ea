"""Which models fit a table, that their code runs as it stands, and the race between small ones."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.diagnostics import candidates, recipes, recommend
from interdomain.diagnostics.candidates import Sizes, best_negations, candidates_for
from interdomain.diagnostics.prepared import prepare

ROWS = 120
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(ROWS, 2))
Y = np.sin(6 * X[:, :1]) * X[:, 1:] + 0.1 * RNG.normal(size=(ROWS, 1))
LABELS = (Y > np.median(Y)).astype(float)
PLACES = np.column_stack([RNG.uniform(-90, 90, ROWS), RNG.uniform(-180, 180, ROWS)])
OF_PLACES = np.column_stack([PLACES, X])
PIXELS = RNG.uniform(size=(ROWS, 36))
Bernoulli = gpflow.likelihoods.Bernoulli

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "table": (X, Y, {}),
    "classes": (X, LABELS, {"likelihood": Bernoulli()}),
    "globe": (PLACES, Y, {"globe": (0, 1)}),
    "globe, classes": (PLACES, LABELS, {"globe": (0, 1), "likelihood": Bernoulli()}),
    "globe and others": (OF_PLACES, Y, {"globe": (0, 1)}),
    "globe and others, classes": (
        OF_PLACES,
        LABELS,
        {"globe": (0, 1), "likelihood": Bernoulli()},
    ),
    "images": (PIXELS, LABELS, {"image_shape": (6, 6), "likelihood": Bernoulli()}),
}

POINTS = ("points", "orthogonal points")
MINIBATCHES = ("harmonics with diagonal q", "harmonics with full q")
FIT = {
    "table": {"exact", "waves", "harmonics", "effects", "effects and harmonics", *MINIBATCHES},
    "classes": {"waves", "harmonics", "effects", *MINIBATCHES},
    "globe": {"exact", "globe"},
    "globe, classes": {"globe"},
    "globe and others": {"exact", "globe and effects"},
    "globe and others, classes": {"globe and effects"},
    "images": {"patches"},
}


@pytest.mark.parametrize("case", CASES)
def test_which_fit(case: str) -> None:
    X, Y, arguments = CASES[case]
    found = set(candidates(X, Y, **arguments))
    assert found - {"blocks"} == FIT[case] | set(POINTS)


def test_wide_tables_and_large_ones() -> None:
    wide = np.random.default_rng(1).normal(size=(60, 55))
    assert "harmonics" not in candidates(wide, wide[:, :1])
    many = np.random.default_rng(1).normal(size=(2_500, 4))
    found = candidates(many, many[:, :1])
    assert "exact" not in found and "waves" not in found


def small(case: str) -> dict[str, Any]:
    X, Y, arguments = CASES[case]
    likelihood = arguments.get("likelihood")
    rest = {name: value for name, value in arguments.items() if name != "likelihood"}
    data = prepare(X, Y, gaussian=likelihood is None, **rest)
    return candidates_for(data, likelihood, Sizes(num_inducing=12, steps=3), len(data.X), 1)


@pytest.mark.parametrize("case", CASES)
def test_arguments_are_those_of_the_recipe(case: str) -> None:
    for one in small(case).values():
        assert set(one.arguments) <= set(inspect.signature(one.recipe).parameters), one.name


def ran(code: str, X: Any, Y: Any) -> Any:
    """The model that a script leaves."""
    scope = {"X": X, "Y": Y}
    exec(code, scope)
    return scope["model"]


QUICK = [("table", "exact"), ("table", "waves"), ("classes", "points"), ("globe", "globe")]
ALL = [
    (case, name) for case, names in FIT.items() for name in sorted(names) if name not in MINIBATCHES
]
SLOW = [
    *[pair for pair in ALL if pair not in QUICK],
    ("table", MINIBATCHES[0]),
    ("classes", MINIBATCHES[1]),
    ("table", "orthogonal points"),
]


@pytest.mark.parametrize(
    ("case", "name"),
    [*QUICK, *[pytest.param(*pair, marks=pytest.mark.full) for pair in SLOW]],
)
def test_the_code_runs_as_it_stands(case: str, name: str) -> None:
    model = ran(small(case)[name].code, *CASES[case][:2])
    found = prepared_rows(case)
    mean, variance = model.predict_f(found[:5])
    assert np.all(np.isfinite(mean)) and np.all(np.asarray(variance) > 0)


def prepared_rows(case: str) -> Any:
    X, Y, arguments = CASES[case]
    rest = {name: value for name, value in arguments.items() if name != "likelihood"}
    return prepare(X, Y, gaussian="likelihood" not in arguments, **rest).X


@pytest.mark.full
def test_blocks_along_the_best_negations() -> None:
    """Rows that are symmetric about two axes, and a table that is long in all directions."""
    quarter = np.random.default_rng(3).uniform(0.5, 3.0, size=(100, 2))
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    rows = np.concatenate([quarter * sign for sign in signs])
    data = prepare(rows, rows[:, :1] ** 2, gaussian=True)
    groups = best_negations(data)
    assert groups > 0
    found = candidates_for(data, None, Sizes(num_inducing=16, steps=3), len(rows), groups)
    model = ran(found["blocks"].code, rows, rows[:, :1] ** 2)
    assert isinstance(model, idm.models.AdditiveSVGP)


@pytest.mark.parametrize(
    ("likelihood", "text"),
    [
        (Bernoulli(), "likelihood = gpflow.likelihoods.Bernoulli()"),
        (gpflow.likelihoods.MultiClass(3), "likelihood = gpflow.likelihoods.MultiClass(3)"),
        (gpflow.likelihoods.Softmax(3), "likelihood = gpflow.likelihoods.Softmax(3)"),
        (gpflow.likelihoods.StudentT(), "likelihood = gpflow.likelihoods.StudentT()"),
    ],
)
def test_how_a_likelihood_is_written(likelihood: Any, text: str) -> None:
    Y = np.arange(ROWS) % 3.0
    code = candidates(X, Y, likelihood)["points"].code
    assert text in code.splitlines()
    num_latent = 3 if likelihood.latent_dim == 3 else 1
    assert f"num_latent = {num_latent}" in code.splitlines()


def test_a_likelihood_of_the_users_own_is_expected_in_the_scope() -> None:
    class Own(Bernoulli):
        """Another class."""

    code = candidates(X, LABELS, Own())["points"].code
    assert "likelihood = " not in code and "likelihood," in code


def broken(X: Any, Y: Any) -> Any:
    """A model that breaks."""
    raise RuntimeError("a kernel broke")


def short_run(**arguments: Any) -> idm.diagnostics.Recommendation:
    """Of waves, and of an exact GP that breaks; there is no time for others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipes, "exact", broken)
        times = dict.fromkeys(candidates(X, Y), 1e9) | {"waves": 0.0, "exact": 0.0}
        patch.setattr(
            importlib.import_module("interdomain.diagnostics.recommend"), "START_UP", times
        )
        return recommend(X, Y, **{"seconds": 30, "progress": False, **arguments})


@pytest.fixture(scope="module")
def found() -> idm.diagnostics.Recommendation:
    return short_run()


def test_a_report(found: idm.diagnostics.Recommendation) -> None:
    assert found.race is not None and set(found.race.entries) == {"exact", "waves"}
    assert found.name == "waves" and found.seconds > 0
    assert set(found.not_tried) == set(found.candidates) - {"exact", "waves"}
    text = str(found)
    assert text.startswith("Take waves: Fourier features of a box") and found.code in text
    assert "120 rows, 2 columns" in text and "So few rows" in text
    assert "Not tried, for want of time: " in text and str(found.race) in text
    noise = float(found.race.models["waves"].likelihood.variance.numpy())
    assert f"Noise: {100 * noise:.2g}% of the variance of Y" in text


def test_one_that_fails_is_in_the_report(found: idm.diagnostics.Recommendation) -> None:
    assert found.race is not None
    assert found.race.entries["exact"].error == "RuntimeError: a kernel broke"
    assert "failed: RuntimeError: a kernel broke" in str(found)


def test_the_same_seed_gives_the_same_answer(
    found: idm.diagnostics.Recommendation, capsys: pytest.CaptureFixture[str]
) -> None:
    again, other = short_run(progress=True), short_run(seed=1, clock="wall")
    assert "recommend" in capsys.readouterr().err
    assert again.race is not None and other.race is not None and found.race is not None
    first, second, third = (
        one.entries["waves"].trace[-1].log_density for one in (found.race, again.race, other.race)
    )
    assert first == second != third and other.race.clock == "wall"


def test_no_time_for_any() -> None:
    found = recommend(X, Y, seconds=0.01, progress=False)
    assert found.race is None and found.name == "exact"
    assert set(found.not_tried) == set(found.candidates)
    assert "No model was ready within 0.01 s" in str(found)


def test_two_values_may_be_classes() -> None:
    found = recommend(X, LABELS, seconds=0.01, progress=False)
    assert any("likelihood=gpflow.likelihoods.Bernoulli()" in one for one in found.findings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seconds": 0}, "seconds must be positive, found 0"),
        ({"clock": "sun"}, "clock must be"),
        ({"seed": -1}, "seed must be"),
        ({"progress": 1}, "progress must be"),
        ({"likelihood": "Bernoulli"}, "likelihood must be a GPflow likelihood"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        recommend(X, Y, **arguments)
    with pytest.raises(ValueError, match="num_inducing must be"):
        candidates(X, Y, num_inducing=1)
