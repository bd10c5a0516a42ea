"""What is done to a table before models are compared; the code that is shown does the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import interdomain as idm
from interdomain.diagnostics.prepared import PreparedData, prepare

ROWS = 60


def table(num_columns: int = 3) -> Any:
    return np.random.default_rng(0).normal(3.0, 2.0, size=(ROWS, num_columns))


def targets() -> Any:
    return np.random.default_rng(1).normal(5.0, 3.0, size=(ROWS, 1))


def with_text() -> Any:
    X = table().astype(object)
    X[:, 1] = np.array(["red", "green", "blue"], dtype=object)[np.arange(ROWS) % 3]
    return X


def with_many_levels() -> Any:
    X = table().astype(object)
    X[:, 2] = [f"level {number // 2}" for number in range(ROWS)]
    return X


def with_gaps() -> Any:
    X = table()
    X[3, 0], X[7, 2] = np.nan, np.inf
    return X


def often_missing() -> Any:
    X = table()
    X[: ROWS // 2, 1] = np.nan
    return X


def constant() -> Any:
    X = table()
    X[:, 0] = 0.1
    return X


def repeated() -> Any:
    X = table()
    X[:, 2] = 3 - 2 * X[:, 0]
    return X


def places(*others: float) -> Any:
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.uniform(-90, 90, ROWS), rng.uniform(-180, 180, ROWS)])
    return np.column_stack([X, *[rng.normal(one, 2, ROWS) for one in others]])


class Frame:
    """What a data frame has."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def to_numpy(self) -> Any:
        return self.values


def run(code: tuple[str, ...], X: Any, Y: Any) -> tuple[Any, Any]:
    scope = {"X": X, "Y": Y, "np": np, "idm": idm}
    exec("\n".join(code), scope)
    return scope["X"], scope["Y"]


@pytest.mark.parametrize(
    ("X", "arguments", "columns", "said"),
    [
        (table(), {}, 3, ()),
        (table(1)[:, 0], {}, 1, ()),
        (Frame(table()), {}, 3, ()),
        (np.arange(2 * ROWS).reshape(ROWS, 2) % 7, {}, 2, ()),
        (with_text(), {}, 5, ("Column 1 is text: one column of zeros and ones for each of 3",)),
        (with_many_levels(), {}, 22, ("each of 20 levels, the most frequent of 30",)),
        (with_gaps(), {}, 3, ("2 of 60 rows have missing values: left out",)),
        (often_missing(), {}, 2, ("Column 1: often missing, left out (1 of 3)",)),
        (constant(), {}, 2, ("Column 0: constant, left out",)),
        (repeated(), {}, 2, ("Column 2: a repetition of another, left out",)),
        (places(), {}, 2, ("Columns 0 and 1 could be latitude and longitude: pass globe=(0, 1)",)),
        (places(), {"globe": (0, 1)}, 3, ()),
        (places(0.0, 9.0), {"globe": (0, 1)}, 5, ()),
        (table(6)[:, ::-1], {"image_shape": (2, 3)}, 6, ()),
    ],
)
def test_the_code_does_what_was_done(
    X: Any, arguments: dict[str, Any], columns: int, said: tuple[str, ...]
) -> None:
    for gaussian in (True, False):
        found = prepare(X, targets(), gaussian=gaussian, **arguments)
        assert found.X.shape[1] == columns
        assert len(found.found) == len(said)
        assert all(part in sentence for part, sentence in zip(said, found.found, strict=True))
        again = run(found.code, X, targets())
        np.testing.assert_array_equal(again[0], found.X)
        np.testing.assert_array_equal(again[1], found.Y)


def standardised(found: PreparedData, columns: slice) -> bool:
    X = found.X[:, columns]
    return bool(np.allclose(X.mean(axis=0), 0) and np.allclose(X.std(axis=0), 1))


def test_scales() -> None:
    plain = prepare(table(), targets(), gaussian=True)
    assert standardised(plain, slice(None))
    assert np.isclose(plain.Y.mean(), 0) and np.isclose(plain.Y.std(), 1)
    assert np.array_equal(prepare(table(), targets(), gaussian=False).Y, targets())
    globe = prepare(places(4.0), targets(), gaussian=True, globe=(0, 1))
    assert globe.globe and standardised(globe, slice(3, None))
    np.testing.assert_allclose(np.linalg.norm(globe.X[:, :3], axis=1), 1)
    pixels = prepare(table(6), targets(), gaussian=True, image_shape=(2, 3))
    assert pixels.image_shape == (2, 3) and pixels.X.min() == 0 and pixels.X.max() == 1


def test_columns_with_two_values_are_categories() -> None:
    found = prepare(with_text(), targets(), gaussian=True)
    assert found.categorical == [1, 2, 3]


def test_labels_of_minus_one_become_zero() -> None:
    Y = np.where(targets() > 5, 1, -1)
    found = prepare(table(), Y, gaussian=False)
    assert set(np.unique(found.Y)) == {0.0, 1.0} and "Y is -1 and 1" in found.found[-1]
    np.testing.assert_array_equal(run(found.code, table(), Y)[1], found.Y)


@pytest.mark.parametrize(
    ("X", "Y", "arguments", "message"),
    [
        (table()[None], targets(), {}, r"X must be \[N, D\]"),
        (table(), targets()[:9], {}, r"Y must be \[N, P\] with the 60 rows of X"),
        (table(), np.array(["yes", "no"])[np.arange(ROWS) % 2], {}, "Y must be numbers"),
        (table(), np.ones(ROWS), {}, "Y: a column does not vary"),
        (table()[:19], targets()[:19], {}, "20 rows without missing values are needed, found 19"),
        (np.ones((ROWS, 2)), targets(), {}, "all columns are constant"),
        (np.full((ROWS, 2), np.nan), targets(), {}, "all columns are often missing"),
        (table(), targets(), {"image_shape": (2, 2)}, "image_shape must have 3 pixels"),
        (table(), targets(), {"image_shape": "2x2"}, "image_shape"),
        (np.ones((ROWS, 4)), targets(), {"image_shape": (2, 2)}, "all pixels are the same"),
        (table(), targets(), {"globe": (0, 3)}, "globe must be two columns of numbers"),
        (with_text(), targets(), {"globe": (0, 1)}, "globe must be two columns of numbers"),
        (100 * table(), targets(), {"globe": (0, 1)}, "are no degrees"),
        (constant(), targets(), {"globe": (0, 1)}, "latitude or longitude is constant"),
    ],
)
def test_what_is_refused(X: Any, Y: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(X, Y, gaussian=True, **arguments)
