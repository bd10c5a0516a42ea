"""Numbers and scales of a table: taken from training rows, and the same for new rows."""

from typing import Any

import numpy as np
import pytest

from interdomain.tables import TableScaler
from tests.tables.frames import Frame

RNG = np.random.default_rng(0)
AGE = RNG.normal(50.0, 9.0, size=12)
SITE = np.array(["north", "south", "west"] * 4, dtype=object)


class Category:
    """A column of pandas's type ``category``, whose levels need not be text."""

    dtype = "category"

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def tolist(self) -> list[Any]:
        return self._values

    def __array__(self, *arguments: Any) -> Any:
        return np.array(self._values, dtype=object)


class NotAvailable:
    """The missing value of a nullable column of pandas: neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return self

    __ne__ = __eq__
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


def test_scales_are_those_of_the_training_rows() -> None:
    scaler = TableScaler(Frame(age=AGE, site=SITE, one=np.ones(12), same=["a"] * 12))
    assert scaler.names == ("age", "site: south", "site: west")
    assert scaler.left_out == ("same", "one")
    new = Frame(same=["a"], one=[7.0], site=["west"], age=[60])
    south_west = np.array([0.0, 1.0])
    expected = [(60 - AGE.mean()) / AGE.std(), *(south_west - 1 / 3) / np.sqrt(2 / 9)]
    np.testing.assert_allclose(scaler(new), [expected], rtol=1e-12)
    by_place = np.array([[60, "west", 7.0, "a"]], dtype=object)
    np.testing.assert_allclose(scaler(by_place), [expected], rtol=1e-12)


def test_types_of_columns() -> None:
    """Booleans, numbers as objects, and categories of anything are read; levels are in order, and
    by their text where they have no order."""
    numbers = Frame(flag=AGE > 50, whole=np.arange(12).astype(object), half=np.arange(12) / 2)
    expected = np.column_stack([AGE > 50, np.arange(12), np.arange(12) / 2])
    np.testing.assert_array_equal(TableScaler(numbers, "none")(numbers), expected)
    for levels in ((3, 1, 2), ((0, 1), (1, 2), (0, 2)), (2, "b", None.__class__)):
        values = [levels[k] for k in np.arange(12) % 3]
        frame = Frame(kind=Category(values))
        found = TableScaler(frame, "none")(frame)
        try:
            in_order = sorted(levels)  # type: ignore[type-var]
        except TypeError:
            in_order = sorted(levels, key=str)
        places = np.array([in_order.index(value) for value in values])
        np.testing.assert_array_equal(found, places[:, None] == [[1, 2]])


def test_pixels_and_degrees() -> None:
    images = np.array([[0.0, 255.0], [51.0, 0.0]])
    np.testing.assert_allclose(TableScaler(images, "pixels")(images), images / 255)
    places = Frame(lon=np.array([170.0, -170.0]), lat=np.array([10.0, 10.0]))
    scaler = TableScaler(places, "degrees")
    assert scaler.names == ("lat", "lon") and scaler(places).tolist() == [[10, 170], [10, -170]]


def test_what_is_refused() -> None:
    days = np.datetime64("2020-01-01") + np.arange(12)
    missing = np.array([NotAvailable(), *[1.0] * 11], dtype=object)
    gaps = np.array([None, *SITE[1:]], dtype=object)
    for X, message in [
        (Frame(day=days), "column 'day' must be real numbers: a column.*pass times as numbers"),
        (Frame(age=missing), "column 'age' must not have missing"),
        (Frame(site=gaps), "column 'site' must not have missing"),
        (Frame(site=Category([None, 1])), "column 'site' must not have missing"),
        (Frame(age=AGE * np.inf), "column 'age' must not have missing"),
        (Frame(), "found 0 columns without rows"),
        (Frame(age=[]), "found 1 columns without rows"),
        (AGE, "X must be a matrix"),
        (np.ones([12, 2]), "no column varies"),
        (Frame(site=["a"] * 3), "no column varies"),
    ]:
        with pytest.raises(ValueError, match=message):
            TableScaler(X)
    for X, scale, message in [
        (np.ones([2, 2]), "pixels", "no pixel varies"),
        (np.ones([2, 3]), "degrees", "two columns, latitudes from -90 to 90"),
        (np.array([[91.0, 0.0]]), "degrees", "two columns, latitudes from -90 to 90"),
        (np.ones([2, 2]), "unit", "scale must be 'columns' or"),
    ]:
        with pytest.raises(ValueError, match=message):
            TableScaler(X, scale)
