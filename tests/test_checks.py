"""Every check function once, with its wrong values, and what it takes."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32

from interdomain import _arguments as checks
from interdomain import inducing_variables as iv
from interdomain import kernels, models
from tests.conformance.helpers import assert_refused

OBJECTS = [None, "bad", object(), {}, [[1.0], [2.0, 3.0]], np.datetime64("2020-01-01"), 1j]
NOT_FINITE = [np.nan, np.inf]
EMPTY = np.zeros([0, 2])
MASKED = np.ma.masked_array(np.ones([2, 2]), mask=[[False, True], [False, False]])
UNMASKED = np.ma.masked_array(np.ones([2, 2]))
SPARSE = scipy.sparse.csr_matrix(np.eye(2))


class Tensor:
    """A tensor of another library: its type is none of NumPy's."""

    shape, dtype = (2, 2), "other.float64"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.eye(2)


# What is called, values that are right, and those that are not.
CHECKS: dict[str, tuple[Callable[[Any], Any], list[Any], list[Any]]] = {
    "integer": (
        lambda v: checks.integer("it", v, at_least=1, at_most=9),
        [3, np.int32(1), 9],
        [*OBJECTS, *NOT_FINITE, True, 2.5, 0, 10, [1, 2]],
    ),
    "as_integers": (
        lambda v: checks.as_integers("it", v, "pass some"),
        [3, [1, 2], range(2)],
        [*OBJECTS, [], 2.5, [0.5], ["3"], np.ones([2, 2])],
    ),
    "choice": (lambda v: checks.choice("it", v, ["good", "better"]), ["good"], [*OBJECTS, "", 3]),
    "instance": (lambda v: checks.instance("it", v, Callable, "a function"), [abs], ["bad", type]),
    "items": (lambda v: checks.items("it", v, "a list"), [[1], (), np.ones(2)], ["bad", {}, 3]),
    "real_array": (
        lambda v: checks.real_array("it", v, "an array"),
        [[0.5, np.nan], EMPTY, [True, False], UNMASKED],
        [*OBJECTS, [1j], np.full(2, None), MASKED, SPARSE],
    ),
    "numbers": (lambda v: checks.numeric("it", v, "an array", kinds="fiuc"), [[1j]], OBJECTS[:-1]),
    "check_real_type": (
        lambda v: checks.check_real_type("it", v),
        [np.ones(2, np.float32), [1.0], np.ones(2, np.longdouble), UNMASKED],
        [np.array([1j]), np.array(["2020"], "datetime64[D]"), MASKED, Tensor()],
    ),
    "sliceable": (
        lambda v: checks.sliceable("it", v, "rows"),
        [np.eye(2), tf.eye(2), np.eye(2, dtype=np.longdouble), np.eye(2, dtype=object), UNMASKED]
        + [Tensor(), [[1.0, 2.0]], np.array([[np.nan]], object), np.eye(2, dtype=np.uint8)],
        [*OBJECTS, np.full(2, None), np.eye(2) * 1j, tf.constant([["a"]]), MASKED, SPARSE]
        + [MASKED.astype(object), np.array(["2020"], "datetime64[D]"), tf.sparse.eye(2)],
    ),
    "check_squares": (
        lambda v: checks.check_squares("it", v, np.float32),
        [np.full([1, 2], 4e18), np.zeros([0, 2]), np.array([[np.nan, 2.0]])],
        [np.full([1, 2], 1e20), np.full([1, 2], -1e160), np.full([3, 1], np.inf)],
    ),
    "finite_array": (
        lambda v: checks.finite_array("it", v, (1,), "a vector"),
        [[0.5, 1.5], []],
        [*OBJECTS, NOT_FINITE, 1.0, EMPTY],
    ),
    "filled_matrix": (
        lambda v: checks.filled_matrix("it", v, "a matrix"),
        [[[0.5, 1.5]]],
        [*OBJECTS, [NOT_FINITE], [1.0], EMPTY],
    ),
    "number": (
        lambda v: checks.number("it", v, above=0),
        [0.5, np.float32(2)],
        [*OBJECTS, *NOT_FINITE, -1, 0.0, [1.0]],
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_wrong_values(name: str) -> None:
    check, right, wrong = CHECKS[name]
    for value in right:
        check(value)
    for value in wrong:
        with pytest.raises(ValueError, match="^it must be ") as caught:
            check(value)
            pytest.fail(f"{value!r} is accepted")
        assert len(str(caught.value)) < 250, value


def test_values_are_returned_in_their_type() -> None:
    assert type(checks.integer("it", np.int32(3), at_least=0)) is int
    stored = np.eye(2, dtype=np.float32)
    far = type("Far", (), {"shape": (10**11, 2), "__getitem__": np.empty})()
    assert checks.sliceable("it", far, "rows") is far
    assert checks.sliceable("it", stored, "rows") is stored  # it may be in a file
    for rows in (np.eye(2, dtype=object), np.eye(2, dtype=np.longdouble), Tensor(), [[1.0, 2.0]]):
        assert checks.sliceable("it", rows, "rows").dtype == np.float64
    assert checks.as_integers("it", range(2), "") == (0, 1)
    assert checks.as_integers("it", np.int64(4), "") == (4,)
    array = np.ones(3)
    assert checks.numeric("it", array, "an array") is array
    assert checks.real_array("it", array, "an array") is not array
    values = np.array([1, 2.5], object)
    assert checks.real_array("it", values, "an array").tolist() == [1.0, 2.5]


def test_long_values_are_abbreviated() -> None:
    assert checks.short(np.ones((2, 3))) == "<array [2, 3]>"
    assert checks.short(np.arange(100.0)) == "[ 0., 1., ..., 98., 99.]"
    assert checks.short("x" * 100) == "a str"
    assert checks.short(np.float32(2)) == "2.0"
    traced = tf.function(lambda x: tf.constant(checks.short(x)), autograph=False)
    assert traced(tf.zeros([2])).numpy() == b"a tensor of shape (2,)"


# Sizes are checked before anything is built; the message says the cost.


def additive() -> models.AdditiveSVGP:
    points = InducingPoints(np.zeros((200, 1)))
    return models.AdditiveSVGP(Matern32(), gpflow.likelihoods.Gaussian(), points)


def test_what_is_larger_than_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, box = kernels.ArcCosine(), kernels.Periodized(Matern32(), 0.0, 1.0)
    waves = iv.VariationalFourierFeatures(0, 1, 1)
    monkeypatch.setattr(checks, "MAX_GIB", 1e-5)
    for name, build in (
        ("dimension, degrees", lambda: iv.SphericalHarmonics(3, [0, 1])),
        ("dimension, degrees", lambda: iv.SphericalHarmonics.for_kernel(kernel, 2, 3)),
        ("num_frequencies", lambda: iv.VariationalFourierFeatures(0, 1, 3)),
        ("frequencies", lambda: iv.BoxFourierFeatures(0, 1, [[0], [1]])),
        ("num_features", lambda: iv.BoxFourierFeatures.for_kernel(box, 3)),
        ("num_components", lambda: iv.HarmonicInducingPoints(np.zeros((3, 1)), 2)),
        ("inducing_variables", lambda: iv.ProductInducingVariables([waves, waves])),
        ("num_latent_gps", additive),
    ):
        assert_refused([(build, f"^{name}.*: .* GiB, more than the .* this machine has")])
