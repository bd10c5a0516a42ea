"""Independent references for the sphere: extended precision, and none of the library's formulas."""

from collections.abc import Callable
from functools import cache, partial
from math import factorial
from typing import Any

import numpy as np
from mpmath import mp

Mpf = Any
ZonalFunction = Callable[[Mpf], Mpf]

DIGITS = 40
EIGENVALUE_DIMENSIONS = (2, 3, 5, 9, 20)
EIGENVALUE_DEGREES = (0, 1, 2, 3, 4, 5, 8, 13, 19, 20)


def unit_vectors(num: int, dimension: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(num, dimension))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def count_monomials_free_of_r2(dimension: int, degree: int) -> int:
    """N(d, l) by listing: monomials of degree l in which x_1 has power 0 or 1 (the others are
    x_1^2 = r^2 - ... away from those)."""

    def count(variables: int, power: int) -> int:
        if variables == 0:
            return int(power == 0)
        return sum(count(variables - 1, power - p) for p in range(power + 1))

    return sum(count(dimension - 1, degree - p) for p in (0, 1) if p <= degree)


def multiplicity(dimension: int, degree: int) -> int:
    """(2l + d - 2) (l + d - 3)! / (l! (d - 2)!), and 2 on the circle."""
    if degree == 0:
        return 1
    if dimension == 2:
        return 2
    d = dimension
    below = factorial(degree) * factorial(d - 2)
    return (2 * degree + d - 2) * factorial(degree + d - 3) // below


def sizes_in_powers(dimension: int) -> list[Mpf]:
    """N(d) in powers of x = l + (d - 2) / 2, constant first, from its zeros."""
    if dimension == 2:
        return [mp.mpf(2)]
    alpha = mp.mpf(dimension - 2) / 2
    polynomial = [mp.zero, 2 / mp.factorial(dimension - 2)]
    for m in range(1, dimension - 2):
        shifted, scaled = [mp.zero, *polynomial], [(m - alpha) * c for c in polynomial]
        polynomial = [a + b for a, b in zip(shifted, [*scaled, mp.zero], strict=True)]
    return [c if i % 2 == dimension % 2 else mp.zero for i, c in enumerate(polynomial)]


@cache
def monomial_coefficients(dimension: int, degree: int) -> tuple[Mpf, ...]:
    """The coefficients of P_l(t), constant first: the explicit sum (DLMF 18.5.10)."""
    with mp.workdps(3 * DIGITS):
        alpha = mp.mpf(dimension - 2) / 2
        values = [mp.zero] * (degree + 1)
        for k in range(degree // 2 + 1):
            # (alpha)_(l-k) / (2 alpha)_l, with the common factor alpha / (2 alpha) = 1/2 taken out
            # so that the circle (alpha = 0) is no exception.
            ratio = mp.one
            if degree > 0:
                ratio = mp.rf(alpha + 1, degree - k - 1) / mp.rf(2 * alpha + 1, degree - 1) / 2
            sign = (-1) ** k * mp.factorial(degree) / mp.factorial(k)
            values[degree - 2 * k] = (
                sign * ratio * 2 ** (degree - 2 * k) / mp.factorial(degree - 2 * k)
            )
        return tuple(values)


def horner(coefficients: tuple[Mpf, ...], t: Mpf) -> Mpf:
    total = mp.zero
    for coefficient in reversed(coefficients):
        total = coefficient + t * total
    return total


def legendre_in(dimension: int, degree: int, t: Mpf) -> Mpf:
    """P_l(t), one at t = 1, for t in [-1, 1]: the explicit sum, with digits for what cancels."""
    with mp.workdps(3 * DIGITS):
        return horner(monomial_coefficients(dimension, degree), t)


def funk_hecke(
    kappa: ZonalFunction,
    dimension: int,
    degree: int,
    angles: tuple[Mpf, ...],
    method: str = "tanh-sinh",
) -> Mpf:
    """The eigenvalue of ``kappa``, a function of the angle, by mpmath's quadrature.

    ``kappa`` should remember its values: the nodes are the same for every degree and dimension.

    :param angles: From 0 to pi (or to where kappa ends), with the angles where it has kinks.
    :param method: "gauss-legendre" takes a tenth of the nodes if kappa is smooth up to the angles.
    """
    coefficients = monomial_coefficients(dimension, degree)  # <= 20 digits cancel to l = 20

    def integrand(theta: Mpf) -> Mpf:
        t, sine = cosine_and_sine(theta)
        return kappa(theta) * horner(coefficients, t) * sine ** (dimension - 2)

    area = mp.beta(mp.mpf(1) / 2, mp.mpf(dimension - 1) / 2)
    return mp.quad(integrand, list(angles), method=method) / area


smooth_funk_hecke = partial(funk_hecke, method="gauss-legendre")


@cache
def cosine_and_sine(theta: Mpf) -> tuple[Mpf, Mpf]:
    return mp.cos(theta), mp.sin(theta)


def matern_total(dimension: int, nu: float, lengthscale: float) -> Mpf:
    return _matern_total(dimension, nu, lengthscale, mp.dps)


@cache
def _matern_total(dimension: int, nu: float, lengthscale: float, digits: int) -> Mpf:
    """sum_l N(d, l) (1 + l (l + d - 2) lengthscale^2 / (2 nu))^(-nu - (d - 1) / 2), all of it.

    Term by term at first; above, (x^2 + q)^-s is expanded in 1/x^2, where x = l + alpha, N is a
    polynomial in x, and each power sums to a Hurwitz zeta function.
    """
    d, alpha = dimension, mp.mpf(dimension - 2) / 2
    curvature, s = 2 * mp.mpf(nu) / mp.mpf(lengthscale) ** 2, mp.mpf(nu) + alpha + mp.mpf(1) / 2
    q = curvature - alpha**2
    first = int(mp.ceil(4 * mp.sqrt(abs(q)))) + 10 + d
    total = mp.fsum(
        multiplicity(d, degree) * (1 + degree * (degree + d - 2) / curvature) ** -s
        for degree in range(first)
    )
    polynomial = sizes_in_powers(d)
    tail, j, term = mp.zero, 0, mp.one
    while abs(term) > mp.mpf(10) ** (5 - DIGITS) * abs(tail):
        term = (
            mp.binomial(-s, j)
            * q**j
            * mp.fsum(
                c * mp.zeta(2 * s + 2 * j - i, first + alpha) for i, c in enumerate(polynomial) if c
            )
        )
        tail, j = tail + term, j + 1
    return total + tail * curvature**s


def matern_eigenvalues(
    dimension: int, nu: float, lengthscale: float, degrees: tuple[int, ...]
) -> list[Mpf]:
    total = matern_total(dimension, nu, lengthscale)
    s = mp.mpf(nu) + mp.mpf(dimension - 1) / 2
    step = mp.mpf(lengthscale) ** 2 / (2 * mp.mpf(nu))
    return [(1 + n * (n + dimension - 2) * step) ** -s / total for n in degrees]


def squared_exponential_eigenvalues(
    dimension: int, lengthscale: float, degrees: tuple[int, ...]
) -> list[Mpf]:
    rate = mp.mpf(lengthscale) ** 2 / 2

    def density(degree: int) -> Mpf:
        return mp.exp(-rate * degree * (degree + dimension - 2))

    total, degree, term = mp.zero, 0, mp.one
    while term > mp.mpf(10) ** -DIGITS or degree < dimension:
        term = multiplicity(dimension, degree) * density(degree)
        total, degree = total + term, degree + 1
    return [density(degree) / total for degree in degrees]


def relative_error(values: np.ndarray, reference: list[Mpf]) -> float:
    """The largest relative error; a zero of the reference has to be matched exactly."""
    errors = [
        abs(mp.mpf(float(v)) - r) / abs(r) if r else mp.mpf(0 if v == 0 else "inf")
        for v, r in zip(values, reference, strict=True)
    ]
    return float(max(errors))
