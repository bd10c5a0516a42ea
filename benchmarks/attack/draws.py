"""Random models for `attack`: kernels, inducing variables and rows that nobody would choose.

Everything comes from the generator that is handed in, so that a seed names a model. All numbers of
a draw are taken before anything is built, in float64: the same draw can be built in both float
types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gpflow
import numpy as np
from numpy.random import Generator

import interdomain as idm
from interdomain.sphere import num_harmonics

Array = np.ndarray[Any, np.dtype[np.float64]]
Pair = tuple[gpflow.kernels.Kernel, gpflow.inducing_variables.InducingVariables]

MAX_INDUCING = 120
SCALES = (-8.0, 8.0)  # exponents of ten: of the rows, and of their distance from the origin


@dataclass(frozen=True)
class Draw:
    """One model and its rows.

    :ivar text: What was drawn, for the list of faults.
    :ivar build: Makes kernel and inducing variable in GPflow's present float type.
    :ivar extreme: Whether the rows are far from one.
    :ivar squared_distance: Of the farthest row from the origin, in lengthscales: what GPflow's
        distances are differences of. A stationary kernel has lost all digits where this times the
        rounding error is not small; a kernel of angles loses none.
    :ivar slope: Of a kernel of angles at angle zero, which a cosine tells to the root of its
        rounding error.
    :ivar kink: Whether the kernel has a slope at distance zero.
    """

    family: str
    text: str
    build: Callable[[], Pair]
    X: Array
    Y: Array
    noise_variance: float
    extreme: bool = False
    squared_distance: float = 0.0
    slope: float = 0.0
    kink: bool = False


def draw(family: str, generator: Generator) -> Draw:
    """A model of one of :data:`FAMILIES`."""
    return FAMILIES[family](generator)


def power(generator: Generator, low: float, high: float, size: int | None = None) -> Any:
    """Numbers whose logarithm is uniform, between powers of ten."""
    values = 10.0 ** generator.uniform(low, high, size)
    return float(values) if size is None else values


def rows(generator: Generator, columns: int, *, extreme: bool) -> Array:
    """Three to twelve rows; some are twice there, all may be tiny, huge or far from the origin."""
    X = generator.normal(size=(generator.integers(3, 13), columns))
    if generator.random() < 0.3:
        X[: len(X) // 2] = X[len(X) - len(X) // 2 :]
    if generator.random() < 0.1:
        X[0] = 0.0
    if extreme:
        X *= power(generator, *SCALES)
        if generator.random() < 0.5:
            X += power(generator, *SCALES) * generator.normal(size=columns)
    return X


def _finish(
    family: str,
    text: str,
    build: Callable[[], Pair],
    generator: Generator,
    X: Array,
    extreme: bool,
    lengthscale: float = np.inf,
    slope: float = 0.0,
) -> Draw:
    noise = power(generator, -3.0, 1.0)
    scale = f"N = {len(X)}, largest |x| {np.max(np.abs(X)):.2g}, noise {noise:.2g}"
    Y = generator.normal(size=(len(X), 1))
    squared = X.shape[1] * float(np.max(np.abs(X)) / lengthscale) ** 2
    kink = text.startswith(gpflow.kernels.Matern12.__name__)
    return Draw(family, f"{text}; {scale}", build, X, Y, noise, extreme, squared, slope, kink)


ZONAL: dict[str, Callable[..., gpflow.kernels.Kernel]] = {
    "arc_cosine_0": lambda **options: idm.kernels.ArcCosine(0, **options),
    "arc_cosine_1": lambda **options: idm.kernels.ArcCosine(1, **options),
    "arc_cosine_2": lambda **options: idm.kernels.ArcCosine(2, **options),
    "matern12": idm.kernels.SphericalMatern12,
    "matern32": idm.kernels.SphericalMatern32,
    "matern52": idm.kernels.SphericalMatern52,
    "squared_exponential": idm.kernels.SphericalSquaredExponential,
    "chordal": idm.kernels.ChordalSquaredExponential,
}


def _zonal(
    generator: Generator, columns: int
) -> tuple[str, Callable[[], gpflow.kernels.Kernel], float]:
    """In words, the kernel, and its slope at angle zero."""
    name = str(generator.choice(list(ZONAL)))
    options: dict[str, Any] = {
        "variance": power(generator, -3, 3),
        "weight_variances": power(generator, -2, 2, columns),
        "bias_variance": power(generator, -2, 2),
    }
    if not name.startswith("arc"):
        options["lengthscale"] = power(generator, -2, 2)
    shown = ", ".join(f"{key} {np.round(value, 4)}" for key, value in options.items())
    slopes = {"arc_cosine_0": 1.0, "matern12": 1 / options.get("lengthscale", 1.0)}
    text = f"{name}, D = {columns}, {shown}"
    return text, lambda: ZONAL[name](**options), slopes.get(name, 0.0)


def _degree(generator: Generator, columns: int, most: int = 12) -> int:
    fitting = [
        degree
        for degree in range(1, most + 1)
        if sum(num_harmonics(columns + 1, level) for level in range(degree + 1)) <= MAX_INDUCING
    ]
    return int(generator.choice(fitting))


def harmonics(generator: Generator) -> Draw:
    extreme = bool(generator.random() < 0.5)
    columns = int(generator.integers(1, 11))
    text, make, slope = _zonal(generator, columns)
    degree = _degree(generator, columns)

    def build() -> Pair:
        kernel = make()
        return kernel, idm.inducing_variables.SphericalHarmonics.for_kernel(
            kernel, columns, max_degree=degree
        )

    X = rows(generator, columns, extreme=extreme)
    text = f"{text}, degree {degree}"
    return _finish("harmonics", text, build, generator, X, extreme, slope=slope)


def points(generator: Generator) -> Draw:
    extreme = bool(generator.random() < 0.5)
    columns = int(generator.integers(1, 19))
    text, make, slope = _zonal(generator, columns)
    X = rows(generator, columns, extreme=extreme)
    Z = X[: generator.integers(1, len(X) + 1)].copy()

    def build() -> Pair:
        return make(), gpflow.inducing_variables.InducingPoints(Z)

    return _finish("points", text, build, generator, X, extreme, slope=slope)


def activations(generator: Generator) -> Draw:
    extreme = bool(generator.random() < 0.5)
    columns = int(generator.integers(1, 7))
    text, make, slope = _zonal(generator, columns)
    degree, seed = _degree(generator, columns, 6), int(generator.integers(1000))
    units = int(generator.integers(1, 1 + min(8, columns + 1)))  # of degree 1 there are d
    activation = str(generator.choice(["relu", "softplus", "gelu", "erf"]))

    def build() -> Pair:
        return make(), idm.inducing_variables.ActivationFeatures.random(
            columns, units, activation, degree, seed=seed
        )

    text = f"{text}, {units} units {activation}, degree {degree}"
    X = rows(generator, columns, extreme=extreme)
    return _finish("activations", text, build, generator, X, extreme, slope=slope)


STATIONARY = (
    gpflow.kernels.SquaredExponential,
    gpflow.kernels.Matern12,
    gpflow.kernels.Matern32,
    gpflow.kernels.Matern52,
)


def _stationary(
    generator: Generator, columns: int
) -> tuple[str, Callable[[], gpflow.kernels.Kernel], float]:
    """In words, the kernel, and its least lengthscale."""
    kind = STATIONARY[generator.integers(len(STATIONARY))]
    variance, lengthscales = power(generator, -3, 3), power(generator, -2, 2, columns)
    text = f"{kind.__name__}, D = {columns}, variance {variance:.3g}, {np.round(lengthscales, 4)}"
    least = float(np.min(lengthscales))
    return text, lambda: kind(variance=variance, lengthscales=lengthscales), least


def harmonic_parts(generator: Generator) -> Draw:
    extreme = bool(generator.random() < 0.5)
    columns = int(generator.integers(1, 7))
    text, make, least = _stationary(generator, columns)
    axes = [int(axis) for axis in generator.permutation(columns)[: generator.integers(1, 4)]]
    X = rows(generator, columns, extreme=extreme)
    Z = X[: generator.integers(1, 5)] * 0.9

    def build() -> Pair:
        kernel = idm.kernels.HarmonicKernel(make(), [idm.transforms.Negation(a) for a in axes])
        return kernel, idm.inducing_variables.HarmonicInducingPoints.for_kernel(kernel, Z)

    return _finish(
        "harmonic_parts", f"{text}, negations {axes}", build, generator, X, extreme, least
    )


def interval(generator: Generator) -> Draw:
    kind = STATIONARY[1 + generator.integers(3)]
    variance, lengthscale = power(generator, -3, 3), power(generator, -2, 2)
    X = rows(generator, 1, extreme=False)
    low, high = float(X.min()) - 0.5, float(X.max()) + 0.5
    count = int(generator.integers(1, 30))
    stretch = power(generator, *SCALES) if generator.random() < 0.5 else 1.0

    def build() -> Pair:
        kernel = kind(variance=variance, lengthscales=lengthscale * stretch)
        return kernel, idm.inducing_variables.VariationalFourierFeatures(
            low * stretch, high * stretch, count
        )

    text = (
        f"{kind.__name__}, variance {variance:.3g}, lengthscale {lengthscale:.3g} x {stretch:.1g}"
    )
    text = f"{text}, {count} frequencies"
    least = lengthscale * stretch
    return _finish("interval", text, build, generator, X * stretch, stretch != 1.0, least)


def mixture(generator: Generator) -> Draw:
    columns, components = int(generator.integers(1, 4)), int(generator.integers(1, 4))
    parts = []
    for _ in range(components):
        count = int(generator.integers(1, 4))
        envelope = power(generator, -3, 1)
        parts.append(
            {
                "frequencies": generator.normal(size=(count, columns)) * power(generator, -2, 1),
                "amplitudes": power(generator, -2, 2, count),
                "centre": generator.normal(size=columns),
                "envelope": envelope,
                "lag": envelope / 4 + power(generator, -3, 1),
            }
        )
    frequencies = int(generator.integers(1, 5))
    X = rows(generator, columns, extreme=False)

    def build() -> Pair:
        kernel = idm.kernels.HarmonizableMixture(
            [idm.kernels.HarmonizableComponent(**part) for part in parts]
        )
        return kernel, idm.inducing_variables.HarmonizableFourierFeatures.for_kernel(
            kernel, frequencies
        )

    text = f"{components} components, D = {columns}, {frequencies} frequencies"
    return _finish("mixture", text, build, generator, X, False)


def patches(generator: Generator) -> Draw:
    image = tuple(int(size) for size in generator.integers(2, 6, 2))
    patch = tuple(int(generator.integers(1, size + 1)) for size in image)
    text, make, least = _stationary(generator, patch[0] * patch[1])
    weighted = bool(generator.random() < 0.5)
    extreme = bool(generator.random() < 0.5)
    X = rows(generator, image[0] * image[1], extreme=extreme)
    count = int(generator.integers(1, 7))
    Z = X.reshape(-1)[: count * patch[0] * patch[1]]
    Z = Z[: len(Z) // (patch[0] * patch[1]) * patch[0] * patch[1]].reshape(-1, patch[0] * patch[1])

    def build() -> Pair:
        kernel = idm.kernels.Convolutional(make(), image, patch, weights=weighted)
        return kernel, idm.inducing_variables.InducingPatches(Z)

    text = f"{text}, images {image}, patches {patch}"
    return _finish("patches", text, build, generator, X, extreme, least)


def orbits(generator: Generator) -> Draw:
    columns = int(generator.integers(2, 5))
    text, make, least = _stationary(generator, columns)
    extreme = bool(generator.random() < 0.5)
    X = rows(generator, columns, extreme=extreme)
    Z = X[: generator.integers(1, 5)] * 0.9
    angle = int(generator.integers(2, 6))

    def build() -> Pair:
        rotation = idm.transforms.Rotation(angle)
        negations = [idm.transforms.Negation(axis) for axis in range(columns)]
        transforms = rotation if columns == 2 else negations[:2]
        kernel = idm.kernels.Invariant(make(), transforms)
        return kernel, idm.inducing_variables.OrbitInducingPoints(Z)

    return _finish("orbits", text, build, generator, X, extreme, least)


FAMILIES: dict[str, Callable[[Generator], Draw]] = {
    "harmonics": harmonics,
    "points": points,
    "activations": activations,
    "harmonic_parts": harmonic_parts,
    "interval": interval,
    "mixture": mixture,
    "patches": patches,
    "orbits": orbits,
}
