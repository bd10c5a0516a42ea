"""Activation functions on the sphere: their coefficients, down to the very small ones."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from mpmath import mp

from interdomain.families.sphere.mathematics import funk_hecke
from interdomain.families.sphere.mathematics.activations import (
    Activation,
    Erf,
    ReLU,
    Softplus,
    resolve_activation,
)
from interdomain.families.sphere.mathematics.funk_hecke import extended_coefficients
from tests.families.sphere.mathematics.references import (
    EIGENVALUE_DIMENSIONS,
    cosine_and_sine,
    legendre_in,
    multiplicity,
    relative_error,
    smooth_funk_hecke,
)

MAX_DEGREE = 20
EXACT: dict[Activation, Callable[[Any], Any]] = {
    ReLU(): lambda t: max(t, mp.zero),
    Softplus(): lambda t: mp.log(1 + mp.exp(t)),
    Softplus(10.0): lambda t: mp.log(1 + mp.exp(10 * t)) / 10,
    Erf(2.5): lambda t: mp.erf(mp.mpf(2.5) * t),
}
DIMENSIONS = {ReLU(): EIGENVALUE_DIMENSIONS, Softplus(): (20,), Erf(2.5): (2,)}


def is_zero(activation: Activation, degree: int) -> bool:
    """sigma(t) - sigma(-t) is t for all but Erf, which is odd."""
    return degree % 2 == 0 if isinstance(activation, Erf) else degree > 1 and degree % 2 == 1


def exact_coefficients(
    exact: Callable[[Any], Any], dimensions: tuple[int, ...], degrees: Sequence[int], kink: Any = 0
) -> dict[int, list[Any]]:
    """For each dimension: all take the function's values at the same nodes."""
    remembered = cache(lambda angle: exact(cosine_and_sine(angle)[0]))
    angles = (mp.zero, mp.acos(kink), mp.pi)
    return {
        dimension: [smooth_funk_hecke(remembered, dimension, degree, angles) for degree in degrees]
        for dimension in dimensions
    }


@pytest.mark.parametrize("activation", DIMENSIONS, ids=repr)
def test_coefficients(activation: Activation) -> None:
    """To full relative accuracy, however small: mpmath has 60 digits, and they are above 1e-25.
    Those that vanish are known by a formula, and are zero."""
    degrees = range(MAX_DEGREE + 1)
    # Those of ReLU are sums of logarithms of the gamma function, up to 1e2, in float64.
    tolerance = 1e-12 if activation == ReLU() else 4e-16
    nonzero = tuple(degree for degree in degrees if not is_zero(activation, degree))
    with mp.workdps(60):
        cosine_and_sine.cache_clear()  # its values have the digits they were made with
        references = exact_coefficients(EXACT[activation], DIMENSIONS[activation], degrees)
        cosine_and_sine.cache_clear()
        for dimension, reference in references.items():
            for degree, value in zip(degrees, reference, strict=True):
                assert (abs(value) < mp.mpf(10) ** -50) == is_zero(activation, degree), dimension
            rounded = [r if abs(r) > mp.mpf(10) ** -50 else mp.zero for r in reference]
            actual = activation.coefficients(dimension, degrees)
            assert relative_error(actual, rounded) <= tolerance, dimension
            assert activation.nonzero_degrees(dimension, MAX_DEGREE) == nonzero
            assert activation.nonzero_degrees(dimension, 0) == nonzero[: int(0 in nonzero)]


def test_the_series_is_the_function() -> None:
    """The nearest poles are those of Softplus at +-i pi: its terms fall like 6.4^-l, far below
    what float64 resolves."""
    activation, dimension = Softplus(), 20
    values = activation.coefficients(dimension, range(MAX_DEGREE + 1))
    assert 0 < abs(values[-1]) < 1e-24
    t = np.array([-1.0, -0.71, -0.2, 0.05, 0.6, 1.0])
    series = [
        float(
            mp.fsum(
                a * multiplicity(dimension, n) * legendre_in(dimension, n, mp.mpf(x))
                for n, a in enumerate(values)
            )
        )
        for x in t
    ]
    np.testing.assert_allclose(activation(tf.constant(t)), series, rtol=0, atol=1e-14)


@pytest.mark.parametrize("activation", EXACT, ids=repr)
def test_values(activation: Activation) -> None:
    """The function that is evaluated, next to the one that has been integrated."""
    t = np.linspace(-1, 1, 9)
    expected = [float(EXACT[activation](mp.mpf(x))) for x in t]
    np.testing.assert_allclose(activation(tf.constant(t)), expected, rtol=1e-14, atol=1e-16)
    single = activation(tf.constant(t, tf.float32))
    assert single.dtype == tf.float32
    np.testing.assert_allclose(single, expected, rtol=1e-6, atol=1e-7)


def swish(t: tf.Tensor) -> tf.Tensor:
    return t * tf.sigmoid(3 * t)


def leaky(t: tf.Tensor) -> tf.Tensor:
    return tf.maximum(t, 0.1 * t)  # tf.nn.leaky_relu rounds 0.1 to single precision


FUNCTIONS: dict[str, tuple[Activation, Callable[[Any], Any]]] = {
    "swish": (resolve_activation(swish), lambda t: t / (1 + mp.exp(-3 * t))),
    "leaky": (resolve_activation(leaky), lambda t: max(t, t / mp.mpf(10))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_function(name: str) -> None:
    """To a few rounding errors of the function; what is exactly zero has no degree."""
    activation, exact = FUNCTIONS[name]
    degrees = tuple(range(14))
    references = exact_coefficients(exact, EIGENVALUE_DIMENSIONS, degrees, mp.zero)
    for dimension, reference in references.items():
        actual = activation.coefficients(dimension, degrees)
        np.testing.assert_allclose(
            actual, np.array(reference, float), rtol=0, atol=1e-14, err_msg=f"d = {dimension}"
        )
        # To be told from zero a coefficient has to exceed the noise: (10 + 13) eps 1.3 at the most.
        above = tuple(n for n in degrees if abs(reference[n]) > 8e-15)
        below = {n for n in degrees if abs(reference[n]) < 1e-30}
        found = activation.nonzero_degrees(dimension, 13)
        assert set(above) <= set(found) and not below & set(found), dimension
        np.testing.assert_array_equal(np.flatnonzero(actual), found)
        assert below == {3, 5, 7, 9, 11, 13}, dimension  # a part of t, and an even function


def test_coefficients_inside_a_compiled_function() -> None:
    """Values at once, that are the same for all calls: the cache holds arrays."""

    @tf.function(autograph=False)
    def compiled(t: tf.Tensor) -> tf.Tensor:
        return t * resolve_activation(tf.cos).coefficients(3, [0, 1, 2])

    np.testing.assert_allclose(
        compiled(tf.ones(3, tf.float64)), resolve_activation(tf.cos).coefficients(3, [0, 1, 2])
    )


def test_errors() -> None:
    for function, message in (
        (tf.math.log, "finite values of the same shape, .* 100 of them not finite"),
        (tf.reduce_sum, r"same shape, found \(\) for \(200,\), 0 of them not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            resolve_activation(function).coefficients(3, [0, 1])
    with pytest.raises(ValueError, match="^sharpness must be positive, found 0.0"):
        Softplus(0.0)
    with pytest.raises(ValueError, match="one of 'relu', .* found 'swish'; pass .*Softplus"):
        resolve_activation("swish")
    assert resolve_activation("erf") == Erf()


def test_coefficients_that_are_zero_cannot_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """cos(theta) has no degree two: no number of digits tells its coefficient from zero."""
    monkeypatch.setattr(funk_hecke, "_MAX_DIGITS", 80)  # with 1,000 it takes 15 seconds
    with pytest.raises(ValueError, match=r"a coefficient among \(1, 2\) in dimension 3 is too sm"):
        extended_coefficients(lambda mp, theta: mp.cos(theta), 3, [1, 2])
    assert extended_coefficients(lambda mp, theta: mp.cos(theta), 3, [1]) == (1 / 3,)
    assert extended_coefficients(lambda mp, theta: mp.one, 3, []) == ()
