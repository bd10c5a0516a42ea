"""Inner products in the RKHS of a Matern kernel on an interval, in two ways apart from the code."""

import math

import gpflow
import numpy as np
import scipy.integrate
from gpflow.kernels import Matern12, Matern32, Matern52, Stationary
from numpy.polynomial import Legendre

from interdomain.inducing_variables import VariationalFourierFeatures

MATERNS = (Matern12, Matern32, Matern52)
"""Of order p + 1/2, p being the place in the tuple."""

LOWER, UPPER = -0.3, 1.9


def kernel(order: int, **keywords: object) -> Stationary:
    return MATERNS[order](variance=1.3, lengthscales=0.8, **keywords)


def features(count: int = 3, degree: int = 3) -> VariationalFourierFeatures:
    return VariationalFourierFeatures(LOWER, UPPER, count, polynomial_degree=degree)


def phi(iv: VariationalFourierFeatures, x: np.ndarray, derivative: int = 0) -> np.ndarray:
    """The features or one of their derivatives, ``[M, N]``."""
    w = 2 * np.pi * np.arange(1, iv.num_frequencies + 1)[:, None] / (iv.upper - iv.lower)
    angle = w * (x - iv.lower) + np.pi / 2 * derivative  # d cos(a) = cos(a + pi / 2)
    constant = np.full([1, len(x)], float(derivative == 0))
    waves = [constant, w**derivative * np.cos(angle), w**derivative * np.sin(angle)]
    ends = [iv.lower, iv.upper]
    legendre = [Legendre.basis(n + 1, ends) for n in range(iv.polynomial_degree)]
    polynomials = [one.deriv(derivative)(x)[None] for one in legendre]
    return np.concatenate([*waves, *polynomials])


def by_quadrature(iv: VariationalFourierFeatures, order: int, k: Stationary) -> np.ndarray:
    """``1/q int (Lg)(Lh) dx + v(g)^T P^-1 v(h)`` for ``L = (d/dx + rate)^(p+1)``: Gauss-Legendre,
    the noise's density q from the variance it gives, and P from the Taylor series of the kernel."""
    variance, lengthscale = k.variance.numpy(), k.lengthscales.numpy()
    rate = math.sqrt(2 * order + 1) / lengthscale
    nodes, weights = np.polynomial.legendre.leggauss(80)
    half = (iv.upper - iv.lower) / 2
    x = iv.lower + half * (nodes + 1)
    filtered = sum(
        math.comb(order + 1, n) * rate ** (order + 1 - n) * phi(iv, x, n) for n in range(order + 2)
    )
    mass = scipy.integrate.quad(
        lambda w: (rate**2 + w**2) ** -(order + 1) / math.pi, 0, np.inf, epsabs=0, epsrel=1e-13
    )[0]
    inside = half * (filtered * weights) @ filtered.T * mass / variance

    polynomial = {0: [1.0], 1: [1.0, rate], 2: [1.0, rate, rate**2 / 3]}[order]
    exponential = [(-rate) ** n / math.factorial(n) for n in range(2 * order + 1)]
    series = np.convolve(polynomial, exponential)[: 2 * order + 1]
    derivatives = [math.factorial(n) * c for n, c in enumerate(series)]
    P = variance * np.array(
        [[(-1) ** j * derivatives[i + j] for j in range(order + 1)] for i in range(order + 1)]
    )
    ends = np.concatenate([phi(iv, np.array([iv.lower]), n) for n in range(order + 1)], axis=1)
    return inside + ends @ np.linalg.solve(P, ends.T)


def on_grids(
    iv: VariationalFourierFeatures, k: Stationary, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``phi^T K^-1 phi`` and ``phi^T K^-1 k(grid, X)`` with the values of phi on ever finer grids,
    whose errors are polynomials of the step without constant: extrapolated to none."""
    inner, cross = [], []
    for count in (20, 40, 80, 160):
        x = np.linspace(iv.lower, iv.upper, count + 1)
        solved = np.linalg.solve(k(x[:, None]).numpy(), phi(iv, x).T)
        inner.append(phi(iv, x) @ solved)
        cross.append(solved.T @ k(x[:, None], X).numpy())
    return _extrapolated(inner), _extrapolated(cross)


def _extrapolated(values: list[np.ndarray]) -> np.ndarray:
    """Richardson's, for steps that halve."""
    power = 1
    while len(values) > 1:
        values = [
            (2**power * fine - coarse) / (2**power - 1)
            for coarse, fine in zip(values[:-1], values[1:], strict=True)
        ]
        power += 1
    return values[0]


def data(count: int = 25) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-0.5, 1.5, size=(count, 1)), axis=0)
    Y = np.sin(4 * X) + 0.1 * rng.normal(size=(count, 1))
    return X.astype(gpflow.default_float()), Y.astype(gpflow.default_float())
