"""Random harmonizable components, and their kernel written from the paper in complex numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from interdomain.kernels import HarmonizableComponent


@dataclass(frozen=True)
class Form:
    """The form of the parameters of a component."""

    name: str
    dimension: int
    num_frequencies: int
    envelope: str
    lag: str
    complex_amplitudes: bool = True
    rank: int | None = None
    local: str = "gaussian"

    def __str__(self) -> str:
        return self.name


FORMS = (
    Form("1d", 1, 3, "scalar", "scalar"),
    Form("1d-real", 1, 2, "scalar", "diagonal", complex_amplitudes=False),
    Form("1d-rank-one", 1, 3, "full", "scalar", rank=1),
    Form("1d-one-frequency", 1, 1, "scalar", "scalar"),
    Form("2d-scalar", 2, 2, "scalar", "scalar"),
    Form("2d-mixed", 2, 2, "diagonal", "scalar", rank=1),
    Form("2d-full", 2, 3, "full", "full"),
    Form("2d-full-lag", 2, 2, "scalar", "full", complex_amplitudes=False),
)


BEYOND = (
    Form("1d-matern12", 1, 2, "scalar", "scalar", local="matern12"),
    Form("1d-matern32", 1, 2, "scalar", "diagonal", complex_amplitudes=False, local="matern32"),
    Form("2d-matern52", 2, 2, "diagonal", "scalar", local="matern52"),
    Form("2d-gsk", 2, 2, "none", "full", rank=1),
    Form("1d-gsk-matern32", 1, 2, "none", "scalar", local="matern32"),
)
"""Locally stationary kernels that are not Gaussian, and generalized spectral kernels, which have no
window: without Fourier features."""


def definite(form: str, dimension: int, rng: np.random.Generator, size: float) -> np.ndarray:
    if form == "scalar":
        return np.asarray(size * rng.uniform(0.8, 1.2))
    if form == "diagonal":
        return size * rng.uniform(0.7, 1.3, dimension)
    root = rng.normal(size=[dimension, dimension])
    root /= np.linalg.norm(root)
    return size * (np.eye(dimension) + root @ root.T)


def as_matrix(value: np.ndarray, dimension: int) -> np.ndarray:
    return value if value.ndim == 2 else value * np.eye(dimension)


def component(form: Form, seed: int = 0, **keywords: object) -> HarmonizableComponent:
    """With everything away from its default."""
    rng = np.random.default_rng(seed)
    Q, D = form.num_frequencies, form.dimension
    W = rng.normal(size=[Q, form.rank or Q])
    if form.complex_amplitudes:
        W = W + 1j * rng.normal(size=W.shape)
    return HarmonizableComponent(
        rng.uniform(-0.6, 0.6, size=[Q, D]),
        amplitudes=W @ W.conj().T,
        centre=rng.normal(size=D),
        scales=rng.uniform(0.8, 1.3, size=D),
        envelope=None if form.envelope == "none" else definite(form.envelope, D, rng, 0.2),
        lag=definite(form.lag, D, rng, 0.15),
        local=form.local,
        **keywords,
    )


@dataclass(frozen=True)
class Values:
    """The paper's parameters, as arrays."""

    frequencies: np.ndarray
    B: np.ndarray
    centre: np.ndarray
    scales: np.ndarray
    envelope: np.ndarray
    lag: np.ndarray
    local: str = "gaussian"

    @classmethod
    def of(cls, kernel: HarmonizableComponent) -> Values:
        D = kernel.dimension
        return cls(
            kernel.frequencies.numpy(),
            kernel.amplitudes.numpy(),
            kernel.centre.numpy(),
            kernel.scales.numpy(),
            as_matrix(np.zeros([]) if kernel.envelope is None else kernel.envelope.numpy(), D),
            as_matrix(kernel.lag.numpy(), D),
            kernel.local,
        )


def window(values: Values, Y: np.ndarray, Y2: np.ndarray) -> np.ndarray:
    """k_LSG, for Y and Y2 ``[..., D]``, or the locally stationary kernel in its place."""
    mean, lag = values.scales * (Y + Y2) / 2, values.scales * (Y - Y2)
    D = len(values.centre)
    if values.local != "gaussian":
        excess = np.diag(values.lag - values.envelope / 4)
        r = np.abs(lag) * 2 * np.pi * np.sqrt(excess)  # distances over lengthscales
        functions = {
            "matern12": lambda r: np.exp(-r),
            "matern32": lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
            "matern52": lambda r: (1 + np.sqrt(5) * r + 5 / 3 * r**2) * np.exp(-np.sqrt(5) * r),
        }
        squares = np.square(values.scales * Y) + np.square(values.scales * Y2)
        exponent = np.sum(np.diag(values.envelope) * squares, axis=-1)
        return np.exp(-(np.pi**2) * exponent) * np.prod(functions[values.local](r), axis=-1)
    exponent = sum(
        values.envelope[d, e] * mean[..., d] * mean[..., e]
        + values.lag[d, e] * lag[..., d] * lag[..., e]
        for d in range(D)
        for e in range(D)
    )
    return np.exp(-2 * np.pi**2 * exponent)


def real_kernel(values: Values, X: np.ndarray, X2: np.ndarray) -> np.ndarray:
    """The real part of k_p of eqs. 9 and 14, with the conjugate that eq. 14 lacks, for all pairs of
    rows."""
    Y, Y2 = X - values.centre, X2 - values.centre
    waves, waves2 = (np.exp(2j * np.pi * y @ values.frequencies.T) for y in (Y, Y2))
    return window(values, Y[:, None], Y2[None]) * (waves @ values.B @ waves2.conj().T).real


def real_kernel_of_pairs(values: Values, X: np.ndarray, X2: np.ndarray) -> np.ndarray:
    """For each row of X and the same of X2."""
    Y, Y2 = X - values.centre, X2 - values.centre
    waves, waves2 = (np.exp(2j * np.pi * y @ values.frequencies.T) for y in (Y, Y2))
    products = np.einsum("ni,ij,nj->n", waves, values.B, waves2.conj())
    return window(values, Y, Y2) * products.real


def grid(dimension: int, half_width: float, step: float) -> tuple[np.ndarray, float]:
    """Points of a square grid about zero, and the volume of its cells. The trapezoid rule on it is
    exact to rounding for what has decayed at its ends, in the integrand and in its transform."""
    axis = np.arange(-np.ceil(half_width / step), np.ceil(half_width / step) + 1) * step
    points = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1)
    return points.reshape(-1, dimension), step**dimension


def one_sided(dimension: int, length: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of Gauss and Legendre on each of the 2^D orthants of a cube: for
    integrands that have a kink where an entry is zero."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    axis = np.concatenate([length * (nodes - 1) / 2, length * (nodes + 1) / 2])
    weight = np.tile(length * weights / 2, 2)
    points = np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1)
    weights = np.prod(np.stack(np.meshgrid(*[weight] * dimension, indexing="ij")), axis=0)
    return points.reshape(-1, dimension), weights.reshape(-1)


HALF_WIDTH, STEP = 4.0, 0.165
"""About the centre of a component, of the plane's integrals."""


def transform_with_itself(values: Values, w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The covariances ``E[f(w) conj f(v)]`` of the transforms ``int f(x) exp(-2 pi i w^T x) dx`` of
    the process at w and at v."""
    points, volume = grid(len(values.centre), HALF_WIDTH, STEP)
    points = points + values.centre
    waves, waves2 = (volume * np.exp(-2j * np.pi * u @ points.T) for u in (w, v))
    parts = np.array_split(np.arange(len(points)), len(points) // 500 + 1)
    return sum(
        waves @ real_kernel(values, points, points[rows]) @ waves2[:, rows].conj().T
        for rows in parts
    )
