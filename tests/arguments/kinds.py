"""Kinds of arguments, and for each the values that cannot be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

HUGE = 10**9


class Nothing:
    """An object that is of no use to any constructor."""

    def __repr__(self) -> str:
        return "<Nothing>"


NOTHING = Nothing()
DATE = np.datetime64("2020-01-01")
Wrong = dict[str, Any]


@dataclass(frozen=True)
class Argument:
    """:param good: Makes a value that is right.
    :param wrong: What is wrong, by a name for messages."""

    good: Callable[[], Any]
    wrong: Wrong


def _argument(good: Any, wrong: Wrong, optional: bool, without: tuple[str, ...] = ()) -> Argument:
    make = good if callable(good) and not isinstance(good, type) else lambda: good
    wrong = wrong if optional else {"None": None, **wrong}
    return Argument(make, {key: value for key, value in wrong.items() if key not in without})


def integer(good: Any, least: int | None = 1, *, optional: bool = False, huge: bool = False) -> Any:
    """:param huge: Whether a size of 1e9 is too much."""
    wrong: Wrong = {
        "text": "3",
        "fraction": 2.5,
        "NaN": np.nan,
        "infinity": np.inf,
        "minus infinity": -np.inf,
        "complex": 1j,
        "empty": [],
        "list": [1, 2],
        "array": np.ones([2, 2], int),
        "object": NOTHING,
        "bool": True,
        "date": DATE,
    }
    if least is not None:
        wrong |= {"too low": least - 1, "negative": -HUGE}
    if huge:
        wrong |= {"huge": HUGE}
    return _argument(good, wrong, optional)


def number(good: float, *, sign: str = "positive", optional: bool = False) -> Argument:
    """:param sign: "positive", "not negative" or "any"."""
    wrong: Wrong = {
        "text": "bad",
        "NaN": np.nan,
        "infinity": np.inf,
        "complex": 1j,
        "empty": [],
        "matrix": np.ones([2, 2]),
        "object": NOTHING,
        "dict": {},
        "date": DATE,
    }
    if sign != "any":
        wrong |= {"negative": -1.0}
    if sign == "positive":
        wrong |= {"zero": 0.0}
    return _argument(good, wrong, optional)


def array(
    good: Any, *, positive: bool = False, optional: bool = False, without: tuple[str, ...] = ()
) -> Argument:
    """An array of numbers; :param without: Values that are right nevertheless."""
    values = np.asarray(good, float)
    wrong: Wrong = {
        "text": "bad",
        "texts": np.full(values.shape, "bad"),
        "NaN": values * np.nan,
        "infinity": values + np.inf,
        "complex": values + 1j,
        "date": np.full(values.shape, DATE),
        "objects": np.full(values.shape, NOTHING, object),
        "Nones": np.full(values.shape, None, object),
        "empty": np.zeros([0] + [1] * max(values.ndim - 1, 0)),
        "object": NOTHING,
        "dict": {},
        "ragged": [[1.0], [1.0, 2.0]],
        "rank 4": np.ones([1, 1, 1, 1]) * (values.ravel()[0] if values.size else 1.0),
    }
    if positive:
        wrong |= {"negative": -values, "zero": 0 * values}
    return _argument(lambda: np.array(good, float), wrong, optional, without)


def boolean(good: bool = False) -> Argument:
    wrong: Wrong = {
        "text": "no",
        "empty text": "",
        "number": 0.5,
        "NaN": np.nan,
        "empty": [],
        "array": np.array([True, False]),
        "object": NOTHING,
        "one": 1,
    }
    return _argument(good, wrong, False)


def made(good: Callable[[], Any], *, optional: bool = False, without: tuple[str, ...] = ()) -> Any:
    """An object of some class, such as a kernel."""
    wrong: Wrong = {
        "text": "bad",
        "number": 3,
        "NaN": np.nan,
        "empty": [],
        "list": [NOTHING],
        "class": Nothing,
        "object": NOTHING,
        "array": np.ones([2, 2]),
    }
    return _argument(good, wrong, optional, without)


def several(good: Callable[[], Any], *, without: tuple[str, ...] = ()) -> Argument:
    """A list of such objects."""
    wrong: Wrong = {
        "text": "bad",
        "number": 3,
        "NaN": np.nan,
        "Nones": [None],
        "numbers": [3],
        "texts": ["bad"],
        "object": NOTHING,
        "class": Nothing,
        "dict": {},
        "empty": [],
    }
    return _argument(good, wrong, False, without)


def choice(good: str, *, optional: bool = False) -> Argument:
    wrong: Wrong = {
        "empty text": "",
        "number": 3,
        "empty": [],
        "bytes": good.encode(),
        "object": NOTHING,
        "array": np.ones(2),
        "unknown": "bad",
    }
    return _argument(good, wrong, optional)


def function(good: Callable[..., Any]) -> Argument:
    wrong: Wrong = {"text": "bad", "number": 3, "empty": [], "class": Nothing, "object": NOTHING}
    return _argument(lambda: good, wrong, False)


def integers(
    good: Any,
    *,
    optional: bool = False,
    huge: bool = False,
    least: int | None = 1,
    without: tuple[str, ...] = (),
) -> Argument:
    """Some integers, such as a shape."""
    size = len(good)
    wrong: Wrong = {
        "text": "bad",
        "fractions": [0.5] * size,
        "NaNs": [np.nan] * size,
        "infinity": [np.inf] * size,
        "texts": ["3"] * size,
        "Nones": [None] * size,
        "empty": [],
        "matrix": np.ones([2, 2, 2]),
        "object": NOTHING,
        "number": 2.5,
        "complex": [1j] * size,
    }
    if least is not None:
        wrong |= {"too low": [least - 1] * size}
    if huge:
        wrong |= {"huge": [HUGE] * size}
    return _argument(lambda: good, wrong, optional, without)
