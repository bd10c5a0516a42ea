"""A sum of effects in one call: the interactions it finds, and what it refuses."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.kernels import FiniteRank
from interdomain.tables import Additive, fit_additive
from interdomain.tables.fitting import AdditiveFit, begin
from interdomain.tables.pairs import choose_pairs
from tests.tables.frames import Frame

RNG = np.random.default_rng(0)
X = RNG.uniform(size=[400, 5])
STATION = RNG.integers(3, size=400)
# Friedman's function in other units, without the columns that do nothing, and with stations.
Y = 1e6 * (
    5
    + 10 * np.sin(np.pi * X[:, :1] * X[:, 1:2])
    + 20 * (X[:, 2:3] - 0.5) ** 2
    + 10 * X[:, 3:4]
    + RNG.normal(size=[400, 1])
)
NAMES = ["a", "b", "c", "d", "e"]


def fitted(*arguments: Any, **options: Any) -> AdditiveFit:
    return fit_additive(*arguments, **{"names": NAMES, "steps": 10, "progress": False, **options})


@pytest.fixture(scope="module")
def friedman() -> AdditiveFit:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("interdomain.tables.fitting._SUBSET_STEPS", 20)
        patch.setattr("interdomain.tables.fitting._TURNS", 2)
        return fitted((X, Y), 98, effects=["main", "chosen", ("c", "d", "e")])


def test_the_interaction_of_friedmans_function(friedman: AdditiveFit) -> None:
    assert next(iter(friedman.pairs)) == "a x b"
    first, *others = friedman.pairs.values()
    assert first > 20 and all(gain < 5 for gain in others)
    assert friedman.kernel.effects[:6] == ((0,), (1,), (2,), (3,), (4,), (0, 1))
    assert friedman.kernel.effects[-1] == (2, 3, 4)
    assert friedman.model.inducing_variable.num_inducing <= 98
    mean, _ = friedman.model.predict_f(X)
    assert np.sqrt(np.mean((mean - Y) ** 2)) < 0.25 * np.std(Y)
    noise = float(friedman.model.likelihood.variance.numpy())
    assert 0.7e12 < noise < 1.4e12  # in the units of Y
    assert "a x b" in str(friedman)


def test_units() -> None:
    """The units of the first model do not matter: an optimiser does not see them."""
    units, models = np.array([1e3, 1e-3, 1.0, 7.0, 1.0]), []
    for rows, targets in ((X, Y), (X * units + 3.0, Y / 1e9)):
        kernel = Additive.from_data(rows, separate_lengthscales=True)
        models.append(begin((rows, targets), kernel, 40, 150, 3)[0])
    first, scaled = models
    np.testing.assert_allclose(scaled.elbo() - 150 * np.log(1e9), first.elbo(), rtol=1e-9)
    for one, other in zip(first.trainable_variables, scaled.trainable_variables, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_gains_are_those_of_models_with_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.column_stack([X[:120, :3], STATION[:120]])
    targets = np.column_stack([Y[:120, 0], table[:, 0] * table[:, 3]]) * [1e-6, 1.0]
    kernel = Additive.from_data(table, ["main", (0, 2)], categorical=[3], lengthscales=0.5)
    kernel.constant_variance.assign(30.0)

    def bound(*pairs: tuple[tuple[int, int], float]) -> tuple[float, Any]:
        own = Additive(
            kernel.columns,
            [*kernel.effects, *(effect for effect, _ in pairs)],
            constant_variance=30.0,
        )
        scales = {**dict.fromkeys(kernel.effects, 0.2), **dict(pairs)}
        own.variances.assign([scales[effect] for effect in own.effects])
        waves = {effect: 2 if len(effect) > 1 else 3 for effect in own.effects}
        features = idm.tables.AdditiveFeatures(own, waves)
        model = idm.models.StructuredSGPR(
            (table, targets), FiniteRank(own, features), features, noise_variance=0.2
        )
        tf.config.run_functions_eagerly(True)  # it is evaluated once
        value = float(model.elbo())
        tf.config.run_functions_eagerly(False)
        return value, model

    alone, model = bound()
    monkeypatch.setattr("interdomain.tables.pairs.SHARE", 20)
    monkeypatch.setattr("interdomain.tables.pairs._LEAST_GAIN", 0.1)
    chosen, ranking = choose_pairs(model, kernel, room=60, unit=100.0, progress=False)
    assert {pair.effect for pair in ranking} == {(0, 1), (0, 3), (1, 2), (1, 3), (2, 3)}
    gains = [bound((pair.effect, pair.variance))[0] - alone for pair in ranking]
    np.testing.assert_allclose([pair.gain for pair in ranking], gains, atol=1e-6)
    assert gains == sorted(gains, reverse=True)
    for factor in (0.5, 2.0):  # the variance is the best one
        assert bound((ranking[1].effect, factor * ranking[1].variance))[0] - alone < gains[1]
    # What is chosen next is given what was chosen before.
    assert 2 <= len(chosen) <= 3 and chosen[0] == ranking[0]
    first, second = ((pair.effect, pair.variance) for pair in chosen[:2])
    np.testing.assert_allclose(chosen[1].gain, bound(first, second)[0] - bound(first)[0], atol=1e-6)


def test_groups_and_the_shortlist(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Additive.from_data(X)
    model, _, _ = begin((X, Y), kernel, 60, 400, 0)
    options: dict[str, Any] = {"unit": float(np.var(Y)), "progress": False}
    whole = choose_pairs(model, kernel, room=64, **options)
    monkeypatch.setattr("interdomain.tables.pairs._GROUP", 80)
    parts = choose_pairs(model, kernel, room=64, **options)
    for some, others in zip(whole, parts, strict=True):
        assert [pair.effect for pair in some] == [pair.effect for pair in others]
        gains, same = ([pair.gain for pair in pairs] for pairs in (some, others))
        np.testing.assert_allclose(gains, same, rtol=1e-6)
    assert choose_pairs(model, kernel, room=15, **options) == ([], [])
    monkeypatch.setattr("interdomain.tables.pairs._LEAST_GAIN", 1e9)
    none, ranking = choose_pairs(model, kernel, room=64, **options)
    assert not none and ranking == parts[1]


def test_effects_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interdomain.tables.fitting._SUBSET_STEPS", 15)
    table = np.column_stack([X[:, :3], STATION])
    target = table[:, :1] * (STATION[:, None] == 1) + 0.1 * Y / 1e6
    names = ["a", "b", "c", "station"]
    options: dict[str, Any] = {"names": names, "categorical": "station", "steps": 2}
    found = fitted((table, target), 80, effects=["main", (1, 3)], **options)
    assert found.kernel.effect_names == (*names, "b x station") and not found.pairs
    parts = found.model.kernel, found.model.inducing_variable
    same = idm.models.StructuredSGPR((table, target), *parts, likelihood=found.model.likelihood)
    np.testing.assert_allclose(found.result.elbo, same.elbo(), rtol=1e-8)


def test_a_frame_with_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is that of the numbers of levels; its report has the names of the levels."""
    monkeypatch.setattr("interdomain.tables.fitting._SUBSET_STEPS", 5)
    sites = np.array(["north", "south", "west"], dtype=object)[STATION]
    frame = Frame(site=sites, a=X[:, 0], new=STATION == 1)
    numbers = np.column_stack([STATION, X[:, 0], STATION == 1])
    target = Y / 1e6
    options: dict[str, Any] = {"names": None, "effects": "main", "steps": 2}
    found = fitted((frame, target), 30, **options)
    same = fitted((numbers, target), 30, categorical=[0], **options)
    assert found.kernel.names == ("site", "a", "new")
    np.testing.assert_allclose(found.result.elbo, same.result.elbo, rtol=1e-10)
    np.testing.assert_array_equal(found.kernel.encode(frame), numbers)
    swapped = Frame({name: frame[name][:4] for name in ("new", "site", "a")})
    np.testing.assert_array_equal(found.kernel.encode(swapped), numbers[:4])
    # The result of the fit is taken for its model, and the frame for its rows.
    reports = idm.tables.effects(found, frame), idm.tables.effects(same.model, numbers)
    for rows in (frame, numbers):
        np.testing.assert_allclose(reports[0].at(rows)[0], reports[1].at(numbers)[0], atol=1e-10)
    effects_of_sites = reports[0].of("site", ["west", "north"])
    np.testing.assert_allclose(effects_of_sites, reports[1].of(0, [2, 0]), atol=1e-10)
    ticks = reports[0].plot_effect("site").get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["north", "south", "west"]
    with pytest.raises(ValueError, match="levels of 'site', found 'east'; its levels are"):
        reports[0].of("site", ["east"])
    with pytest.warns(UserWarning, match=r"site: \['east'\] are none of its 3 levels"):
        rows = found.kernel.encode(Frame(frame, site=["east"] * 400))
    with pytest.warns(UserWarning, match="site: other levels than those of the data"):
        _, variance = found.model.predict_f(rows[:1])
    assert variance[0, 0] > found.kernel.variances[0]  # the prior's


def test_bad_input() -> None:
    missing = np.where(np.arange(400)[:, None] == 7, [[0, np.nan, 0, 0, 0]], X)
    for wrong, options, message in [
        ((missing, Y), {}, "X must be finite, found 1 of 400 rows .*'b'"),
        ((X, Y), {"categorical": ["e"]}, "'e' must be categories.* 400 levels in 400 rows"),
        ((X, Y), {"effects": "chosen"}, "effects must be .*pass .'main', 'chosen'."),
        (X, {}, r"data must be a pair \(X, Y\), found a ndarray; pass X and Y in a tuple"),
        ((X, Y[:, 0]), {}, r"Y must be a matrix \[N, P\] with the 400 rows of X, found shape"),
        ((X, Y[:9]), {}, r"Y must be a matrix \[N, P\] with the 400 rows of X, found shape"),
        ((X, Y.astype(str)), {}, "Y must be real numbers: a matrix"),
        ((X, Y), {"names": [1, 2, 3, 4, 5]}, "names must be text, found 1; pass str"),
        ((X, Y), {"subset_size": 0}, "subset_size must be an integer of 2 or more"),
        ((X, Y), {"seed": "first"}, "seed must be an integer of 0 or more"),
        ((X, Y), {"num_inducing": 8}, "num_inducing must be 11 or more"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted(wrong, **options)
    with pytest.raises(ValueError, match=r"data must be a pair \(X, Y\)"):
        fit_additive(X, Y)  # type: ignore[arg-type]
