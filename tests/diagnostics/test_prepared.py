"""How a table is scaled before models are compared; the code that is shown does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpflow.likelihoods import StudentT

import interdomain as idm
from interdomain.diagnostics.prepared import prepare

ROWS = 60
RNG = np.random.default_rng(0)
TABLE = RNG.normal(3.0, 2.0, size=(ROWS, 3))
TARGETS = RNG.normal(5.0, 3.0, size=(ROWS, 1))
PLACES = np.column_stack([RNG.uniform(-90, 90, ROWS), RNG.uniform(-180, 180, ROWS)])
CONSTANT = np.column_stack([np.full(ROWS, 0.1), TABLE])
GAPS = np.where(np.arange(ROWS)[:, None] == 3, np.nan, TABLE)
TEXT = np.array(["red", "green"], dtype=object)[np.arange(ROWS) % 2]


class Frame:
    """What a data frame has."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return np.array(TABLE, *arguments, **options)


@pytest.mark.parametrize(
    ("X", "arguments", "columns"),
    [
        (TABLE, {}, 3),
        (Frame(), {}, 3),
        (np.arange(2 * ROWS).reshape(ROWS, 2) % 7, {}, 2),
        (PLACES, {"globe": (0, 1)}, 3),
        (np.hstack([TABLE, PLACES]), {"globe": (3, 4)}, 6),
        (np.hstack([TABLE, TABLE]), {"image_shape": (2, 3)}, 6),
    ],
)
def test_the_code_does_what_was_done(X: Any, arguments: dict[str, Any], columns: int) -> None:
    for likelihood in (None, StudentT()):
        for Y in (TARGETS, TARGETS[:, 0].tolist()):
            found = prepare(X, Y, likelihood, **arguments)
            assert found.X.shape[1] == columns
            scope = {"X": X, "Y": Y, "np": np, "idm": idm}
            exec("\n".join(found.code), scope)
            np.testing.assert_array_equal(scope["X"], found.X)
            np.testing.assert_array_equal(scope["Y"], found.Y)


def is_standardised(values: Any) -> bool:
    return bool(np.allclose(values.mean(axis=0), 0) and np.allclose(values.std(axis=0), 1))


def test_scales() -> None:
    plain = prepare(TABLE, TARGETS)
    assert is_standardised(plain.X) and is_standardised(plain.Y)
    assert np.array_equal(prepare(TABLE, TARGETS, StudentT()).Y, TARGETS)
    globe = prepare(np.hstack([PLACES, TABLE]), TARGETS, globe=(0, 1))
    assert globe.globe and is_standardised(globe.X[:, 3:])
    np.testing.assert_allclose(np.linalg.norm(globe.X[:, :3], axis=1), 1)
    pixels = prepare(np.hstack([TABLE, TABLE]), TARGETS, image_shape=(2, 3))
    assert pixels.image_shape == (2, 3) and pixels.X.min() == 0 and pixels.X.max() == 1


def test_columns_with_two_values_are_categories() -> None:
    X = np.column_stack([TABLE[:, 0], np.arange(ROWS) % 2, np.arange(ROWS) % 3])
    assert prepare(X, TARGETS).categorical == [1]


@pytest.mark.parametrize(
    ("X", "Y", "arguments", "message"),
    [
        (np.column_stack([TABLE, TEXT]), TARGETS, {}, "X must be .* of real numbers"),
        (GAPS, TARGETS, {}, "X must be finite"),
        (TABLE, np.ones(ROWS), {}, "Y: a column does not vary"),
        (TABLE[:19], TARGETS[:19], {}, "X must have 20 rows or more, found 19"),
        (CONSTANT, TARGETS, {}, r"X: columns \[0\] do not vary"),
        (TABLE, TARGETS, {"image_shape": (2, 2)}, "image_shape must have 3 pixels"),
        (TABLE, TARGETS, {"globe": (0, 3)}, "globe must be two of the 3 columns"),
    ],
)
def test_what_is_refused(X: Any, Y: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(X, Y, **arguments)
