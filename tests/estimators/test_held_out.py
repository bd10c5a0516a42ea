"""Held-out rows that are as far from training rows as new rows are, and programs for new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpflow.likelihoods import Bernoulli

import interdomain as idm
from interdomain.estimators.held_out import held_out_rows
from tests.estimators.frames import Frame
from tests.estimators.test_recommend import raced

RNG = np.random.default_rng(0)
SQUARE = RNG.uniform(-1, 1, (3_000, 2))
MAP = SQUARE[np.abs(SQUARE[:, 0] - 0.2) > 0.2]
GAP = np.c_[RNG.uniform(0, 0.4, 500), RNG.uniform(-1, 1, 500)]
AMONG = RNG.uniform(-1, 0, (500, 2))


def distances(rows: Any, others: Any) -> Any:
    """To the nearest of the others, by a table of all distances."""
    return np.min(np.linalg.norm(rows[:, None] - others, axis=2), axis=1)


def test_held_out_rows_are_as_far_as_new_rows() -> None:
    """In the gap of a map, among the others, and both together."""
    for name, new in (("gap", GAP), ("among", AMONG), ("both", np.r_[GAP, AMONG])):
        held_out, order = held_out_rows(MAP, 300, 0, new)
        assert not set(held_out) & set(order) and len(set(held_out)) == len(held_out) == 300, name
        assert len(order) > 0.6 * len(MAP)
        wanted, found = distances(new, MAP), distances(MAP[held_out], MAP[order])
        levels = [0.1, 0.25, 0.5, 0.75, 0.9]
        expected = np.quantile(wanted, levels)
        np.testing.assert_allclose(np.quantile(found, levels), expected, atol=0.012, err_msg=name)


def test_new_rows_beyond_all_rows() -> None:
    """A third of the rows at most is taken away."""
    held_out, order = held_out_rows(MAP, 300, 0, MAP[:50] + 40.0)
    assert len(order) >= 2 * len(MAP) // 3 and len(held_out) == 300
    assert np.median(distances(MAP[held_out], MAP[order])) > 0.2


def test_without_new_rows_they_are_random() -> None:
    held_out, order = held_out_rows(MAP, 300, 1)
    np.testing.assert_array_equal(
        np.r_[held_out, order], np.random.default_rng(1).permutation(len(MAP))
    )


def test_a_recommendation_for_new_rows() -> None:
    """The race is on rows that are far. Neighbours are told the scaled rows, in the program too."""
    Y = np.sin(3 * MAP[:, :1])
    found, asked = raced({}, X=MAP, Y=Y, X_new=GAP)
    for races, least, most in ((asked, 0.08, 1.0), (raced({}, X=MAP, Y=Y)[1], 0.0, 0.04)):
        near = next(one for one in races if one["name"] == "neighbours")
        held_out, _ = near["validation_data"]
        assert least < np.median(distances(held_out, near["rows"])) < most
    told = {one["name"]: (one["model"][1] or {}).get("options", {}) for one in asked}
    scaled = (GAP - MAP.mean(axis=0)) / MAP.std(axis=0)
    np.testing.assert_allclose(told["neighbours"]["predict_at"], scaled)
    assert "predict_at" not in told["waves"]
    code = found.candidates["neighbours"].code
    assert "idm.fit(model, options={'predict_at': scaler(X_new)})" in code
    assert "X_new" not in found.candidates["waves"].code.partition("def predict")[0]


@pytest.mark.parametrize(
    ("X_new", "arguments", "message"),
    [
        (GAP[:, :1], {}, "X_new must be rows with the columns of X; found: X must have 2 columns"),
        (Frame(height=GAP[:, 0]), {}, "X_new must be rows with the columns of X; found: "),
        (np.full((3, 2), np.nan), {}, "X_new must be rows with the columns of X; found: "),
        (GAP[:0], {}, "X_new must have a row or more|X_new must be rows"),
        (GAP, {"image_shape": (1, 2), "likelihood": Bernoulli()}, "X_new must be None for images"),
    ],
)
def test_what_is_refused(X_new: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        idm.recommend(MAP, (MAP[:, :1] > 0).astype(float), X_new=X_new, **arguments)
