"""How a table is scaled before models are compared; the code that is shown does the same."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow_probability as tfp
from gpflow.likelihoods import Gaussian, StudentT

from interdomain.estimators import outputs
from interdomain.estimators.candidates import candidates_for
from interdomain.estimators.prepared import checked_likelihood, prepare
from tests.estimators.frames import Frame, printed
from tests.models.svgp.small import WithoutMissing, by_source

ROWS = 60
RNG = np.random.default_rng(0)
TABLE = RNG.normal(3.0, 2.0, size=(ROWS, 3))
TARGETS = RNG.normal(5.0, 3.0, size=(ROWS, 1))
CONSTANT = np.column_stack([np.full(ROWS, 0.1), TABLE])
GAPS = np.where(np.arange(ROWS)[:, None] == 3, np.nan, TABLE)
TEXT = np.array(["red", "green"], dtype=object)[np.arange(ROWS) % 2]


FRAME = Frame(site=TEXT, age=TABLE[:, 0], kind=np.array(list("cab"))[np.arange(ROWS) % 3])


def test_the_code_does_what_was_done() -> None:
    images = np.hstack([TABLE, TABLE])
    whole = np.arange(2 * ROWS).reshape(ROWS, 2) % 7
    tables = (TABLE, None, 3), (FRAME, None, 4), (whole, None, 2), (images, (2, 3), 6)
    for X, shape, columns in tables:
        for likelihood in (None, StudentT()):
            for Y in (TARGETS, TARGETS[:, 0].tolist()):
                found = prepare(X, Y, likelihood, shape)
                assert found.X.shape[1] == columns
                scope = printed(found.code, **vars(outputs), X=X, Y=Y)
                np.testing.assert_array_equal(scope["X_train"], found.X)
                np.testing.assert_array_equal(scope["Y_train"], found.Y)


def test_scales() -> None:
    scaled = prepare(TABLE, TARGETS)
    for values in (scaled.X, scaled.Y):
        np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(values.std(axis=0), 1)
    assert np.array_equal(prepare(TABLE, TARGETS, StudentT()).Y, TARGETS)
    pixels = prepare(np.hstack([TABLE, TABLE]), TARGETS, image_shape=(2, 3))
    assert pixels.image_shape == (2, 3) and pixels.X.min() == 0 and pixels.X.max() == 1


def test_columns_with_two_values_are_categories() -> None:
    X = np.column_stack([TABLE[:, 0], np.arange(ROWS) % 2, np.arange(ROWS) % 3])
    framed = prepare(FRAME, TARGETS)  # a column for each level but the first, "a" and "green"
    for data, columns in ((prepare(X, TARGETS), "[1]"), (framed, "[0, 2, 3]")):
        code = candidates_for(data, None, 20, {})["effects"].code
        assert f"categorical={columns})" in code
    for column, level in ((0, TEXT == "red"), (2, FRAME["kind"] == "b"), (3, FRAME["kind"] == "c")):
        np.testing.assert_array_equal(framed.X[:, column] > 0, level)


def test_columns_that_do_not_vary_are_left_out() -> None:
    found = prepare(CONSTANT, TARGETS)
    np.testing.assert_array_equal(found.X, prepare(TABLE, TARGETS).X)
    assert found.sentences == ("Columns of X that do not vary are left out: column 0.",)
    frame = Frame(FRAME, one=np.full(ROWS, 3), same=np.full(ROWS, "a", dtype=object))
    found = prepare(frame, TARGETS)
    np.testing.assert_array_equal(found.X, prepare(FRAME, TARGETS).X)
    assert "same, one" in found.sentences[0]


def test_latitudes_and_longitudes() -> None:
    """Recognised by names and ranges; an argument says it of arrays."""
    places = RNG.uniform(-1, 1, size=(ROWS, 2)) * [80, 170]
    latitude, longitude = places.T
    named = Frame(lng=longitude, Latitude=latitude)
    for X, arguments in (
        (named, {}),
        (places, {"inputs": "degrees"}),
        (Frame(lat=latitude, longitude=longitude % 360), {}),
    ):
        found = prepare(X, TARGETS, **arguments)
        np.testing.assert_array_equal(found.X[:, 0], latitude)
        assert found.on_globe
        for name, candidate in candidates_for(found, None, 30, {}).items():
            assert '"degrees"' in candidate.code.partition("X_train")[0]
            assert ("neighbours" in name) == ('local_inputs="degrees"' in candidate.code), name
            assert "GlobeMatern52" in candidate.code or name == "neighbours"
    small = Frame(lat=latitude / 80, lon=longitude / 80)
    more = Frame(named, height=TABLE[:, 0])
    for X, arguments, sentence in (
        (named, {"inputs": "euclidean"}, ""),
        (places, {}, "If the columns are latitude and longitude in degrees, pass inputs='degrees'"),
        (small, {}, "of a small area, which is taken for a plane"),
        (more, {}, "taken for columns of a plane, since there are other columns"),
        (Frame(lat=2 * latitude, lon=longitude), {}, ""),
        (TABLE[:, :2], {}, ""),
    ):
        found = prepare(X, TARGETS, **arguments)
        assert not found.on_globe and sentence in "".join(found.sentences)
        assert bool(found.sentences) == bool(sentence)
        np.testing.assert_allclose(found.X.std(axis=0), 1)


@pytest.mark.parametrize(
    ("X", "Y", "arguments", "message"),
    [
        (np.column_stack([TABLE, TEXT]), TARGETS, {}, "X must be real numbers"),
        (GAPS, TARGETS, {}, "X must be finite"),
        (Frame(age=GAPS[:, 0]), TARGETS, {}, "X: column 'age' must not have missing or infinite"),
        (
            Frame(day=np.full(ROWS, None)),
            TARGETS,
            {},
            "X: column .day. must be real numbers: a col",
        ),
        (TABLE, np.arange(ROWS) - 1, {"likelihood": gpflow.likelihoods.Poisson()}, "counts"),
        (TABLE, TARGETS, {"likelihood": by_source()}, "SwitchedLikelihood likelihood take 2"),
        (TABLE, TARGETS, {"inputs": "degrees"}, "two columns alone, latitude and longitude"),
        (99 * TABLE[:, :2], TARGETS, {"inputs": "degrees"}, "latitudes from -90 to 90"),
        (TABLE, TARGETS, {"inputs": "radians"}, "inputs must be 'degrees' or 'euclidean'"),
        (CONSTANT[:, :1], TARGETS, {}, "X: no column varies"),
    ],
)
def test_what_is_refused(X: Any, Y: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(X, Y, **arguments)


POINTS = np.linspace(-1, 1, ROWS)[:, None] / np.linspace(-1, 1, ROWS).std()


@pytest.mark.parametrize("kind", ["rising", "fixed", "with prior", "own"])
def test_a_gaussian_that_says_more_is_used(kind: str) -> None:
    data, likelihood = (POINTS, 5 * np.sin(3 * POINTS)), Gaussian(0.03)
    if kind == "rising":
        likelihood = Gaussian(scale=gpflow.functions.Linear(A=[[0.1]], b=[0.5]))
    elif kind == "fixed":
        gpflow.set_trainable(likelihood, False)
    elif kind == "with prior":
        likelihood.variance.prior = tfp.distributions.Gamma(np.float64(2), np.float64(3))
    else:
        likelihood = WithoutMissing()
    assert checked_likelihood(likelihood) is likelihood
    found = candidates_for(prepare(*data, likelihood), likelihood, 50, {})
    assert {"exact", "effects and harmonics"}.isdisjoint(found)
    expected = np.asarray(likelihood.conditional_variance(*data))
    for name in ("waves", "points"):
        built = found[name].entrant[0](data).likelihood
        assert type(built) is type(likelihood) and built is not likelihood
        np.testing.assert_allclose(built.conditional_variance(*data), expected)
        for one, other in zip(built.parameters, likelihood.parameters, strict=True):
            assert one.trainable == other.trainable
        assert "likelihood = " not in found[name].code and "likelihood, " in found[name].code
        assert "Y_mean" not in found[name].code


def test_a_gaussian_that_says_no_more_is_none() -> None:
    for likelihood in (None, Gaussian(), Gaussian(0.3), Gaussian(scale=0.2)):
        assert checked_likelihood(likelihood) is None
