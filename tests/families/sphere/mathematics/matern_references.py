"""Matern kernels on the sphere in extended precision: by Poisson summation, at short lengthscales.

Written apart from the library, which knows heat kernels only. On the circle the sum over
frequencies is the Fourier transform of ``(q + x^2)^-s``, a Bessel function, summed over all turns.
Differentiation with respect to ``t = cos(theta)`` leads from there to every even dimension.
Neglected are the turns but the first: ``exp(-sqrt(q) (2 pi - 2 theta))``.
"""

from functools import cache

from mpmath import mp

from tests.families.sphere.mathematics.references import Mpf, sizes_in_powers


class PoissonMatern:
    """``sum_l N(d, l) (q + x^2)^-s P_l(t)``, divided by its value at t = 1.

    :param dimension: Even.
    :param lengthscale: So short that ``2 nu / lengthscale^2`` is 1,000 or more.
    """

    def __init__(self, dimension: int, nu: float, lengthscale: Mpf) -> None:
        self.dimension, self.nu, self.lengthscale = dimension, nu, mp.mpf(lengthscale)
        alpha = mp.mpf(dimension - 2) / 2
        self.s = nu + alpha + mp.mpf(1) / 2
        self.q = 2 * nu / self.lengthscale**2 - alpha**2
        assert self.q > 500 and dimension % 2 == 0

    def value(self, angle: Mpf) -> Mpf:
        return self._sum(self.dimension, self.s, angle) / self._total(self.s)

    def slope(self, angle: Mpf) -> Mpf:
        """With respect to t: d times the sum in dimension d + 2."""
        d = self.dimension
        return d * self._sum(d + 2, self.s, angle) / self._total(self.s)

    def sensitivity(self, angle: Mpf) -> Mpf:
        """With respect to the logarithm of the lengthscale: dq is -4 nu / lengthscale^2, and the
        derivative of a power to q has the exponent s + 1."""
        change, total = self._sum(self.dimension, self.s + 1, angle), self._total(self.s)
        relative = change / total - self.value(angle) * self._total(self.s + 1) / total
        return 4 * self.nu / self.lengthscale**2 * self.s * relative

    def _sum(self, dimension: int, s: Mpf, angle: Mpf) -> Mpf:
        """By derivatives with respect to t of the sum on the circle, as Taylor polynomials in the
        square of the angle."""
        num, a, u = (dimension - 2) // 2, mp.sqrt(self.q), angle**2
        order = s - mp.mpf(1) / 2
        factor = 2 * mp.sqrt(mp.pi) / mp.gamma(s) / (2 * a) ** order
        jet = [
            factor * (-a / 2) ** j * angle ** (order - j) * bessel / mp.factorial(j)
            for j, bessel in enumerate(_bessel_k(order, num, a * angle))
        ]
        ratio = _taylor_of_ratio(u, num, mp.dps)
        for k in range(num):
            slopes = [(j + 1) * c for j, c in enumerate(jet[1:])]
            # d/dt = -(1 / sin) d/d angle = -2 (angle / sin) d/du, and the slope is (2 + 2 k) times
            # the sum in dimension 4 + 2 k.
            jet = [
                -2 * mp.fsum(ratio[i] * slopes[j - i] for i in range(j + 1)) / (2 + 2 * k)
                for j in range(len(slopes))
            ]
        return jet[0]

    def _total(self, s: Mpf) -> Mpf:
        """At t = 1: the integral over x."""
        return (
            mp.fsum(
                c
                * self.q ** (mp.mpf(i + 1) / 2 - s)
                * mp.beta(mp.mpf(i + 1) / 2, s - mp.mpf(i + 1) / 2)
                for i, c in enumerate(sizes_in_powers(self.dimension))
                if c
            )
            / 2
        )


def _bessel_k(order: Mpf, num: int, z: Mpf) -> list[Mpf]:
    """K of the orders ``order, order - 1, ..., order - num``: two by the trapezoidal rule for
    ``K = integral of exp(-z cosh(v)) cosh(order v)``, whose error falls twice exponentially, and
    the others by the recurrence. (mpmath's own takes minutes at integer orders.)"""
    first = order - int(mp.floor(order))
    step = mp.mpf(1) / 12 if z < 4 else 1 / (6 * mp.sqrt(z))
    low, high = mp.exp(-z) / 2, mp.exp(-z) / 2
    v, term = step, low
    while abs(term) > mp.eps * low:
        weight = mp.exp(-z * mp.cosh(v))
        term = weight * mp.cosh((first + 1) * v)
        low, high, v = low + weight * mp.cosh(first * v), high + term, v + step
    values = {first: step * low, first + 1: step * high}
    k = first + 1
    while k < order:
        values[k + 1] = values[k - 1] + 2 * k / z * values[k]
        k += 1
    return [values[abs(order - j)] for j in range(num + 1)]


@cache
def _taylor_of_ratio(u: Mpf, num: int, digits: int) -> list[Mpf]:
    """The Taylor series of angle / sin(angle) in u, the square of the angle."""
    sine = [
        mp.fsum(
            mp.binomial(k, j) * (-1) ** k * u ** (k - j) / mp.factorial(2 * k + 1)
            for k in range(j, j + 40)
        )
        for j in range(num + 1)
    ]
    inverse = [1 / sine[0]]
    for j in range(1, num + 1):
        rest = mp.fsum(sine[i] * inverse[j - i] for i in range(1, j + 1))
        inverse.append(-rest / sine[0])
    return inverse
