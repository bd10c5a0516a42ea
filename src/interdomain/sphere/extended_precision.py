"""Funk-Hecke coefficients in extended precision, where float64 does not resolve them.

Coefficients of smooth functions fall far below the 1e-15 that a quadrature in float64 resolves,
while the numbers of harmonics that they are multiplied by grow: they are needed to full *relative*
accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mpmath.ctx_mp import MPContext

ExtendedFunction: TypeAlias = Callable[[Any, Any], Any]
"""From an mpmath context and an angle theta to the function's value at ``t = cos(theta)``."""

_MAX_DIGITS = 1_000


def extended_coefficients(
    function: ExtendedFunction, dimension: int, degrees: Sequence[int], *, digits: int = 40
) -> tuple[float, ...]:
    """The Funk-Hecke coefficients of a function that is smooth in (-1, 1), rounded to float64.

    :param function: Smooth in the angle inside (0, pi).
    :param degrees: Degrees whose coefficients are not zero.
    :param digits: Decimal digits to begin with; more are taken where the coefficients need them.
    :raises ValueError: If a coefficient stays below what 1,000 digits resolve, and may be zero.
    """
    if not degrees:
        return ()
    while True:
        mp = MPContext()
        mp.dps = digits
        totals = _tanh_sinh_sums(mp, function, dimension, degrees)
        largest = max(abs(total) for total in totals)
        smallest = min(abs(total) for total in totals)
        # What is lost in cancellation has to leave the 17 digits of a float.
        lost = float(mp.log10(largest / smallest)) if smallest else float(digits)
        if lost < digits - 22:
            break
        digits = int(max(lost, digits)) + 30
        if digits > _MAX_DIGITS:
            raise ValueError(
                f"degrees: a coefficient among {tuple(degrees)} in dimension {dimension} is too "
                "small to be computed, or zero; leave out the degrees that are zero."
            )
    norm = 1 / mp.beta(mp.mpf(1) / 2, mp.mpf(dimension - 1) / 2)
    return tuple(float(norm * total) for total in totals)


def _tanh_sinh_sums(
    mp: Any, function: ExtendedFunction, dimension: int, degrees: Sequence[int]
) -> list[Any]:
    """The integrals of ``function P_l sin(theta)^(d - 2)`` over theta, for each degree l.

    The trapezoidal rule after ``theta = pi / (1 + exp(-pi sinh(k step)))``; the step is halved
    until no sum changes by more than a float can tell.
    """
    max_degree = max(degrees)
    wanted = set(degrees)

    def sums_over(points: range, step: Any) -> list[Any]:
        sums = dict.fromkeys(degrees, mp.zero)
        for k in points:
            decay = mp.exp(-mp.pi * mp.sinh(k * step))
            theta = mp.pi / (1 + decay)
            weight = mp.cosh(k * step) * mp.pi**2 * decay / (1 + decay) ** 2
            weight *= function(mp, theta) * mp.sin(theta) ** (dimension - 2)
            p, p_before, t = mp.one, mp.zero, mp.cos(theta)
            for l in range(max_degree + 1):
                if l in wanted:
                    sums[l] += weight * p
                divisor = l + dimension - 2
                p_next = (
                    ((2 * l + dimension - 2) * t * p - l * p_before) / divisor if divisor else t
                )
                p, p_before = p_next, p
        return [sums[degree] for degree in degrees]

    reach = mp.asinh((mp.dps + 2) * mp.log(10) / mp.pi)
    step, half = reach / 8, 8
    totals = sums_over(range(-half, half + 1), step)
    noise = mp.mpf(10) ** (8 - mp.dps)
    while True:
        step, half = step / 2, 2 * half
        finer = sums_over(range(1 - half, half, 2), step)
        finer = [a + b for a, b in zip(totals, finer, strict=True)]
        largest = max(abs(b) for b in finer)
        # A sum that is lost in the rounding of this precision does not change any more.
        settled = all(
            abs(2 * a - b) <= 1e-18 * abs(b) + noise * largest
            for a, b in zip(totals, finer, strict=True)
        )
        totals = finer
        if settled:
            return [step * total for total in totals]
