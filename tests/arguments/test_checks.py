"""Every check function once, with all its wrong values, and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32

from interdomain import _arguments, diagnostics, inducing_variables, kernels, models, sphere
from interdomain import _arguments as checks

NOTHING = object()
DATE = np.datetime64("2020-01-01")
OBJECTS = [None, "bad", b"bad", NOTHING, {}, [], [NOTHING], [1.0, [2.0]], DATE, 1j]
NUMBERS = [True, -1, 2.5, np.nan, np.inf, -np.inf]
ARRAYS = [
    np.full(2, "bad"),
    np.full(2, DATE),
    np.full(2, None),
    np.full(2, NOTHING),
    1j * np.ones(2),
]
INFINITE = [np.full(2, np.nan), np.full(2, np.inf)]
NO_ARRAYS = [*OBJECTS[:5], *OBJECTS[6:], *ARRAYS]

# What is called, values that are right, and those that are not.
CHECKS: dict[str, tuple[Callable[[Any], Any], list[Any], list[Any]]] = {
    "integer": (
        lambda v: checks.integer("it", v, at_least=1),
        [3, np.int32(1)],
        [*OBJECTS, *NUMBERS, 0, [1, 2], np.ones([2, 2], int)],
    ),
    "integer to ten": (
        lambda v: checks.integer("it", v, at_least=0, at_most=10),
        [0, 10],
        [*OBJECTS, *NUMBERS, 11],
    ),
    "as_integers": (
        lambda v: checks.as_integers("it", v, "pass some"),
        [3, [1, 2], range(2)],
        [*OBJECTS[:2], *OBJECTS[3:], 2.5, [0.5], ["3"], [None], [1j], np.ones([2, 2])],
    ),
    "choice": (lambda v: checks.choice("it", v, ["good", "better"]), ["good"], [*OBJECTS, "", 3]),
    "instance": (lambda v: checks.instance("it", v, str, "a text"), ["text"], [NOTHING, str, None]),
    "a function": (
        lambda v: checks.instance("it", v, Callable, "a function"),
        [abs],
        ["bad", 3, [], type, NOTHING],
    ),
    "items": (
        lambda v: checks.items("it", v, "a list"),
        [[1], (), np.ones(2)],
        ["bad", b"1", {}, NOTHING, 3],
    ),
    "real_array": (
        lambda v: checks.real_array("it", v, "an array"),
        [[0.5, np.nan], np.zeros([0, 2]), [True, False]],
        NO_ARRAYS,
    ),
    "numbers": (
        lambda v: checks.numeric("it", v, "an array", kinds="fiuc"),
        [[1j], 1.0],
        [*OBJECTS[:5], *ARRAYS[:4]],
    ),
    "check_real_type": (
        lambda v: checks.check_real_type("it", v),
        [np.ones(2, np.float32), [1.0]],
        [np.array([1j]), np.array([DATE])],
    ),
    "finite_array": (
        lambda v: checks.finite_array("it", v, (1,), "a vector"),
        [[0.5, 1.5], []],
        [*NO_ARRAYS, *INFINITE, 1.0, np.ones([2, 2])],
    ),
    "filled_matrix": (
        lambda v: checks.filled_matrix("it", v, "a matrix"),
        [[[0.5, 1.5]]],
        [*OBJECTS, *ARRAYS, *INFINITE, [1.0], np.zeros([0, 2]), np.ones([1, 1, 1])],
    ),
    "number": (
        lambda v: checks.number("it", v, above=0),
        [0.5, np.float32(2)],
        [*OBJECTS, *NUMBERS[:2], *NUMBERS[3:], 0.0, [1.0]],
    ),
    "number of zero or more": (
        lambda v: checks.number("it", v, at_least=0),
        [0.0, 1],
        [*OBJECTS, *NUMBERS[:2], *NUMBERS[3:]],
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
    assert checks.integer("it", np.int32(3), at_least=0) == 3
    assert type(checks.integer("it", np.int32(3), at_least=0)) is int
    assert checks.as_integers("it", range(2), "") == (0, 1)
    assert checks.as_integers("it", np.int64(4), "") == (4,)
    array = np.ones(3)
    found = checks.real_array("it", array, "an array")
    assert found is not array and found.dtype == np.float64
    assert checks.numeric("it", array, "an array") is array
    assert checks.real_array("it", np.array([1, 2.5], object), "an array").tolist() == [1.0, 2.5]
    assert checks.real_array("it", tf.constant([1.0], tf.bfloat16), "an array").tolist() == [1.0]


def test_messages_give_rule_value_and_remedy() -> None:
    for call, message in {
        (lambda: checks.integer("n", 0, at_least=1)): "n must be an integer of 1 or more, found 0.",
        (
            lambda: checks.integer("n", 11, at_least=1, at_most=9, remedy="pass 9")
        ): "n must be an integer from 1 to 9, found 11; pass 9.",
        (lambda: checks.number("n", -1.0, above=0)): "n must be positive, found -1.0.",
        (lambda: checks.number("n", 1.0, above=2)): "n must be above 2, found 1.0.",
        (lambda: checks.number("n", -1.0, at_least=0)): "n must be 0 or more, found -1.0.",
        (lambda: checks.number("n", np.nan)): "n must be finite, found nan; pass a finite number.",
        (lambda: checks.choice("n", 3, ["a", "b"])): "n must be 'a' or 'b', found 3.",
        (
            lambda: checks.instance("n", type, int, "a number", "pass one")
        ): "n must be a number, found a class; pass one.",
        (
            lambda: checks.filled_matrix("n", np.zeros((0, 2)), "a matrix")
        ): "n must be a matrix, found shape (0, 2), which is empty.",
        (
            lambda: checks.real_array("n", ["a"], "a vector", "pass floats")
        ): "n must be a vector of real numbers, found <U1 entries, ['a']; pass floats.",
    }.items():
        with pytest.raises(ValueError) as caught:
            call()
        assert str(caught.value) == message


def test_long_values_are_abbreviated() -> None:
    assert checks.short(np.ones((2, 3))) == "<array [2, 3]>"
    assert checks.short(np.arange(100.0)) == "[ 0., 1., ..., 98., 99.]"
    assert checks.short("x" * 100) == "a str"
    assert checks.short(np.float32(2)) == "2.0"
    traced = tf.function(lambda x: tf.constant(checks.short(x)), autograph=False)
    assert traced(tf.zeros([2])).numpy() == b"a tensor of shape (2,)"


def test_limits_of_sizes() -> None:
    limit = int(checks.MAX_GIB * 2**30 / 8)
    checks.check_size("n", "it", limit, allow_large=False)
    checks.check_size("n", "it", 2 * limit, allow_large=True)
    with pytest.raises(ValueError, match="^n: it would take 8 GiB, above the limit of 4 GiB; pass"):
        checks.check_size("n", "it", 2 * limit, allow_large=False)
    rows = checks.ROWS_OF_A_BATCH
    with pytest.raises(ValueError, match="covariances of .* features with 1,000 rows would take 4"):
        checks.check_num_inducing("n", limit // rows + 10_000, "features", allow_large=False)
    checks.check_num_inducing("n", limit // rows, "features", allow_large=False)


# Sizes are checked before anything is built; the message says the cost, `allow_large` lifts it.

HUGE = 10**9


def additive(**arguments: Any) -> models.AdditiveSVGP:
    kernel, points = gpflow.kernels.Matern32(), InducingPoints(np.zeros((200, 1)))
    return models.AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(), points, **arguments)


LIMITS: dict[str, tuple[Callable[[], Any], str]] = {
    "harmonics": (
        lambda: inducing_variables.SphericalHarmonics.for_kernel(kernels.ArcCosine(), 20, 12),
        r"^input_dim=20, max_degree=12: .* 225,792,861 harmonics .* 1.68e\+03 GiB.*allow_la",
    ),
    "degrees": (
        lambda: inducing_variables.SphericalHarmonics(3, range(HUGE)),
        r"max_degree: the quadrature for 1,000,000,000 degrees would take 7.45e\+09 GiB",
    ),
    "frequencies": (
        lambda: inducing_variables.IntervalFourierFeatures(0, 1, HUGE),
        r"num_frequencies: .* 2,000,000,001 features with 1,000 rows would take 1.49e\+04 GiB",
    ),
    "units": (
        lambda: inducing_variables.ActivationFeatures.random(2, HUGE, "relu", 3),
        "num_inducing, input_dim: 1,000,000,000 units over 2 columns would take .* GiB",
    ),
    "components": (
        lambda: inducing_variables.HarmonicInducingPoints(np.zeros((3, 1)), HUGE),
        "num_components: .* 3,000,000,000 points .* GiB",
    ),
    "latent GPs": (
        lambda: additive(num_latent_gps=HUGE),
        r"num_latent_gps: q_sqrt\[0\] of 1,000,000,000 latent GPs and 200 .* GiB",
    ),
    "layers": (
        lambda: kernels.ArcCosine(1, HUGE),
        "depth must be at most .* found 1,000,000,000 layers.*allow_large",
    ),
    "a spectrum": (
        lambda: diagnostics.spectrum(kernels.ArcCosine(), "relu", 3, HUGE),
        "max_degree: .* GiB",
    ),
    "number of harmonics": (
        lambda: sphere.num_harmonics(HUGE, HUGE),
        "degree: .*too many digits",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_cost_is_told_before_anything_is_built(name: str) -> None:
    """None of them would fit into the memory of a machine."""
    build, message = LIMITS[name]
    with pytest.raises(ValueError, match=message):
        build()


def test_a_keyword_lifts_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_arguments, "MAX_GIB", 1e-5)
    kernel = kernels.ArcCosine()
    box = kernels.Periodized(gpflow.kernels.Matern32(), 0.0, 1.0)
    for build in (
        lambda **a: inducing_variables.SphericalHarmonics(3, [0, 1], **a),
        lambda **a: inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 3, **a),
        lambda **a: inducing_variables.IntervalFourierFeatures(0, 1, 3, **a),
        lambda **a: inducing_variables.PeriodicFourierFeatures(0, 1, [[0], [1]], **a),
        lambda **a: inducing_variables.PeriodicFourierFeatures.for_kernel(box, 3, **a),
        lambda **a: inducing_variables.ActivationFeatures.random(2, 3, "relu", 3, **a),
        lambda **a: inducing_variables.HarmonicInducingPoints(np.zeros((3, 1)), 2, **a),
        additive,
    ):
        with pytest.raises(ValueError, match="allow_large=True"):
            build()
        build(allow_large=True)


# Constructors name the argument that cannot be right, the value found, and what to pass. All wrong
# values of a kind are refused by the check of that kind (test_checks.py); what belongs to one
# family is tested with it. Here is what constructors of several families take.

X = np.random.default_rng(0).normal(size=(20, 2))
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: kernels.ArcCosine(depth=1.5), "depth must be an integer.*found 1.5"),
    (
        lambda: kernels.Periodized(Matern32(), 0.0, np.nan),
        "upper must be finite, found nan; pass",
    ),
    (
        lambda: inducing_variables.ActivationFeatures.random(2, 0, "relu", 3),
        "num_inducing must be an integer of 1 or more, found 0",
    ),
    (lambda: inducing_variables.HarmonicInducingPoints(X + np.inf, 2), "Z must be finite"),
    (
        lambda: inducing_variables.OrbitInducingPoints(X[:, 0]),
        r"Z must be .*found shape \(20,\)",
    ),
    (
        lambda: inducing_variables.IntervalFourierFeatures("a", 1.0, 3),
        "lower must be a number",
    ),
    (
        lambda: models.AdditiveSVGP(Matern32(), 0.1, InducingPoints(X)),
        "likelihood must be a GPflow likelihood, found float",
    ),
    (
        lambda: models.StructuredSGPR(
            (X, X[:, :1]), Matern32(), InducingPoints(X[:3]), noise_variance=-1.0
        ),
        "noise_variance must be above 1e-06, found -1.0",
    ),
    (lambda: sphere.CustomActivation(float), "function must be .*found a class"),
]


def test_wrong_arguments_are_named() -> None:
    for make, message in WRONG:
        with pytest.raises(ValueError, match=message):
            make()
