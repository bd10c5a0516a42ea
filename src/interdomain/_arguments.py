"""Checks of arguments: each returns the argument in its proper type, or raises a ValueError.

A message names the argument and says what it must be (``rule``). It then says what was found and
what to pass instead (``remedy``).
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import operator
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np
import tensorflow as tf

Array = np.ndarray[Any, np.dtype[np.float64]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
IntArray = np.ndarray[Any, np.dtype[np.int64]]
Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])

# The memory of this machine in GiB, if the operating system reports it. A constructor, or the first
# use of its object, refuses to build a larger array.
MAX_GIB = np.inf
if hasattr(os, "sysconf"):
    MAX_GIB = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30

TIMES = 'pass times as numbers, such as the hours (t - t[0]) / np.timedelta64(1, "h")'
"""The remedy for dates, and for times whose numbers are so large that they lose digits."""

ROWS_OF_A_BATCH = 1_000  # the number of rows that size checks assume for arrays with a row axis


def short(value: Any) -> str:
    """A value as text for a message or a repr; a long value is abbreviated or named by its type."""
    if isinstance(value, (np.ndarray, np.generic, tf.Tensor, tf.Variable)):
        if tf.is_tensor(value) and not hasattr(value, "numpy"):
            return f"a tensor of shape {value.shape}"  # a graph's tensor, without a value
        array = np.asarray(value)
        if array.ndim > 1:
            return f"<array {list(array.shape)}>"
        text = np.array2string(array, precision=4, separator=", ", threshold=6, edgeitems=2)
        return " ".join(text.split()) if array.ndim else repr(array.item())
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else f"a {type(value).__name__}"


def _error(name: str, rule: str, value: Any, remedy: str = "") -> ValueError:
    return ValueError(f"{name} must be {rule}, found {short(value)}{remedy and f'; {remedy}'}.")


def refusal(name: str, rule: str, found: Any, remedy: str) -> ValueError:
    """The error for an argument that breaks ``rule``, such as "be positive" or "have columns"."""
    return ValueError(f"{name} must {rule}, found {found}; {remedy}.")


def lacks(argument: str, remedy: str) -> Callable[[Function], Function]:
    """A decorator for a method without an argument that users expect. A call with this keyword
    raises a TypeError, as any unknown keyword does, whose message has the remedy."""

    def decorate(method: Function) -> Function:
        @functools.wraps(method)
        def checked(self: Any, *args: Any, **options: Any) -> Any:
            if argument in options:
                where = f"{type(self).__name__}.{method.__name__}".removesuffix(".__init__")
                found = short(options[argument])
                raise TypeError(str(refusal(argument, f"not be passed to {where}", found, remedy)))
            return method(self, *args, **options)

        return cast(Function, checked)

    return decorate


def as_integer(value: Any) -> int | None:
    """``value`` as an int; None if it is not an integer (True and False are not)."""
    try:
        return None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        return None


def integer(
    name: str, value: Any, *, at_least: int, at_most: int | None = None, remedy: str = ""
) -> int:
    """An integer within the limits; floats are not accepted."""
    number = as_integer(value)
    if number is None or number < at_least or (at_most is not None and number > at_most):
        limits = f" of {at_least} or more" if at_most is None else f" from {at_least} to {at_most}"
        raise _error(name, f"an integer{limits}", value, remedy)
    return number


def as_integers(name: str, values: Any, remedy: str) -> tuple[int, ...]:
    """One integer or several integers, as a tuple that is not empty."""
    with contextlib.suppress(TypeError):
        listed = list(values if as_integer(values) is None else [values])
        numbers = tuple(number for value in listed if (number := as_integer(value)) is not None)
        if 0 < len(numbers) == len(listed):
            return numbers
    raise _error(name, "integers", values, remedy)


def choice(name: str, value: Any, choices: Sequence[str], remedy: str = "") -> str:
    """The value, which must be one of the strings ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise _error(name, " or ".join(f"{text!r}" for text in choices), value, remedy)
    return value


def instance(name: str, value: Item, kind: Any, rule: str, remedy: str = "") -> Item:
    """The value, which must be an instance of the class ``kind``, or of one of several classes.
    ``kind`` may be ``Callable``. A value that is itself a class is refused."""
    if isinstance(value, type) or not isinstance(value, kind):
        what = "a class" if isinstance(value, type) else type(value).__name__
        raise ValueError(f"{name} must be {rule}, found {what}" + (f"; {remedy}." * bool(remedy)))
    return value


def items(name: str, values: Any, rule: str) -> list[Any]:
    """The list of the entries of any iterable that is neither text, bytes nor a dictionary."""
    if not isinstance(values, (str, bytes, dict)):
        with contextlib.suppress(TypeError, NotImplementedError):
            return list(values)
    raise _error(name, rule, values)


def pair(name: str, data: Any) -> tuple[Any, Any]:
    """A pair of rows and targets."""
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        what = f"{type(data).__name__}" + f" of {len(data)}" * isinstance(data, (tuple, list))
        raise ValueError(f"{name} must be a pair (X, Y), found a {what}; pass X and Y in a tuple.")
    return data[0], data[1]


def numeric(
    name: str, value: Any, rule: str, remedy: str = "", kinds: str = "biuf"
) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of real numbers in their own type, copied only if necessary.

    Complex numbers, dates, text, None and masked entries are refused. An array of objects is
    accepted if all its entries are real numbers.

    :param kinds: NumPy's codes of the types that the array may have.
    """
    _check_unmasked(name, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, NotImplementedError):  # ragged, or a tensor of a graph
        raise _error(name, rule, value, remedy) from None
    all_real = array.dtype == object and all(isinstance(entry, Real) for entry in array.flat)
    if not (array.dtype.kind in kinds or all_real):
        what = "numbers" if "c" in kinds else "real numbers"
        needed = "a real number" if rule == "a number" else f"{what}{rule and f': {rule}'}"
        raise _error(name, needed, value, TIMES if _has_dates(array) else remedy)
    return array


def _has_dates(array: np.ndarray[Any, Any]) -> bool:
    kinds = datetime.date, np.datetime64, np.timedelta64
    is_date = array.dtype == object and any(isinstance(entry, kinds) for entry in array.flat)
    return array.dtype.kind in "mM" or is_date


def real_array(name: str, value: Any, rule: str, remedy: str = "") -> Array:
    """A new float64 array of real numbers, with the checks of :func:`numeric`."""
    return np.array(numeric(name, value, rule, remedy), dtype=np.float64)


def _check_unmasked(name: str, value: Any) -> None:
    """Refuse masked entries, because NumPy's conversions would read them as data."""
    count = int(np.count_nonzero(np.ma.getmask(value)))  # type: ignore[no-untyped-call]
    if count:
        raise ValueError(
            f"{name} must be without masked entries, found {count}; fill them in, or leave out the "
            "rows that have any."
        )


def check_real_type(name: str, value: Any) -> None:
    """The part of :func:`numeric` that does not read the entries, for data of any size."""
    _check_unmasked(name, value)
    dtype = getattr(value, "dtype", np.dtype(float))
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        return  # also for a type that TensorFlow does not have
    with contextlib.suppress(TypeError):
        kind = tf.as_dtype(dtype)
        if kind.is_floating or kind.is_integer or kind.is_bool:
            return
    found = getattr(dtype, "name", dtype)
    remedy = f"; {TIMES}" if isinstance(dtype, np.dtype) and dtype.kind in "mM" else ""
    raise ValueError(f"{name} must be real numbers, found entries of type {found}{remedy}.")


def sliceable(name: str, value: Any, rule: str) -> Any:
    """Rows of real numbers that can be sliced. Arrays, tensors and handles of files are returned
    unchanged; anything else becomes a NumPy array. Objects and long doubles become float64.

    An object that has a shape and slices, but neither a type nor a conversion to an array, is
    returned unchanged too. The caller must then check each slice.

    :param rule: What the rows must be, for messages.
    """
    if all(hasattr(value, name) for name in ("shape", "__getitem__")) and not any(
        hasattr(value, name) for name in ("dtype", "__array__")
    ):
        return value
    dtype, is_sparse = getattr(value, "dtype", None), hasattr(value, "toarray")
    is_known = isinstance(dtype, (np.dtype, tf.DType)) and dtype != np.dtype(object)
    is_known &= not isinstance(value, (tf.SparseTensor, tf.RaggedTensor))
    if is_sparse or not (is_known and hasattr(value, "shape")):
        remedy = "fill in what is missing, or leave these rows out"
        value = numeric(name, value, rule, "pass .toarray()" if is_sparse else remedy)
        return value.astype(np.float64) if value.dtype == object else value
    check_real_type(name, value)
    return np.asarray(value, np.float64) if dtype == np.longdouble else value


def check_squares(name: str, X: Any, dtype: Any) -> None:
    """Refuse rows ``[..., D]`` between which squared distances may overflow in this type."""
    if not np.size(X):
        return
    largest = max(-float(np.min(X)), float(np.max(X)))
    limit = float(np.sqrt(np.finfo(dtype).max / (4 * np.shape(X)[-1])))
    if largest > limit:
        raise ValueError(
            f"{name} must be at most {limit:.2g}, so that squares of distances are finite in "
            f"{np.dtype(dtype).name}, found {largest:.3g}; scale its columns, such as by "
            "(X - X.mean(axis=0)) / X.std(axis=0)."
        )


def finite_array(
    name: str, value: Any, ranks: tuple[int, ...], rule: str, *, missing: bool = False
) -> Array:
    """A finite float64 array whose rank is one of ``ranks``; it may be empty.

    :param missing: Whether NaN is accepted as a missing value.
    """
    array = real_array(name, value, rule)
    if array.ndim not in ranks:
        raise ValueError(f"{name} must be {rule}, found shape {array.shape}.")
    if np.any(np.isinf(array)) or not (missing or np.all(np.isfinite(array))):
        if array.ndim == 0:
            raise ValueError(f"{name} must be finite, found {short(array)}; pass a finite number.")
        wrong = np.argwhere(np.isinf(array) if missing else ~np.isfinite(array))[0]
        place = "row" if array.ndim > 1 else "entry"
        found = f"{array[tuple(wrong)]:g} in {place} {wrong[0]} (counted from zero)"
        what = "infinite entries" if missing else "NaN and infinite entries"
        raise refusal(name, "be finite", found, f"remove {what}")
    return array


def filled_matrix(name: str, value: Any, rule: str) -> Array:
    """A finite matrix that has at least one row and one column."""
    array = finite_array(name, value, (2,), rule)
    if array.size == 0:
        raise ValueError(f"{name} must be {rule}, found shape {array.shape}, which is empty.")
    return array


def different_rows(name: str, value: Any, rule: str, num_columns: int, remedy: str) -> IntArray:
    """A matrix of integers with ``num_columns`` columns, whose rows are all different."""
    matrix = filled_matrix(name, value, rule)
    if matrix.shape[1] != num_columns:
        raise ValueError(f"{name} must be {rule}, found shape {matrix.shape}; {remedy}.")
    integers = matrix.astype(np.int64)
    if not np.array_equal(integers, matrix):
        raise _error(name, "integers", matrix, remedy)
    rows, counts = np.unique(integers, axis=0, return_counts=True)
    if len(rows) < len(integers):
        twice = rows[np.argmax(counts)].tolist()
        raise ValueError(f"{name} must be different, found {short(twice)} twice; pass each once.")
    return integers


def number(
    name: str, value: Any, *, at_least: float | None = None, above: float | None = None
) -> float:
    """A finite real number within the limits."""
    real = float(finite_array(name, value, (0,), "a number"))
    if at_least is not None and real < at_least:
        raise _error(name, f"{at_least:g} or more", value)
    if above is not None and real <= above:
        raise _error(name, "positive" if above == 0 else f"above {above:g}", value)
    return real


def check_size(name: str, what: str, num_entries: float) -> None:
    """Refuse to build arrays that would take more memory than :data:`MAX_GIB`.

    :param what: What would be built, in words, with its size.
    """
    gib = num_entries * 8 / 2**30  # in float64
    if gib > MAX_GIB:
        raise ValueError(
            f"{name}: {what} would take {gib:,.3g} GiB, more than the {MAX_GIB:,.3g} GiB of "
            "memory that this machine has; pass less."
        )


def check_num_inducing(name: str, count: int, noun: str) -> None:
    """Refuse more variables (``noun``) than memory allows for covariances with a batch."""
    what = f"the covariances of {count:,} {noun} with {ROWS_OF_A_BATCH:,} rows"
    check_size(name, what, float(count) * ROWS_OF_A_BATCH)


def warn(message: str) -> None:
    """Warn, at the line of the caller's code that is outside of this library and GPflow."""
    inside = ("interdomain", "check_shapes", "gpflow", "multipledispatch", "tensorflow")
    level, frame = 1, sys._getframe()
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in inside:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def as_image_shape(image_shape: Any) -> tuple[int, ...]:
    """The shape of an image as a tuple: (H, W) or (H, W, C), of positive integers."""
    remedy = "pass (H, W) or (H, W, C), the shape of one image or patch"
    shape = as_integers("image_shape", image_shape, remedy)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"image_shape must be two or three positive integers, found {image_shape!r}; {remedy}."
        )
    return shape
