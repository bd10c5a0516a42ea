"""The height of the geoid from gravity: an operator that multiplies each degree of a harmonic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.utilities import positive
from scipy.spatial import SphericalVoronoi

import interdomain as idm
from benchmarks._lib.data import Array, load_arrays
from benchmarks._lib.elevations import rows_of, unit_rows
from benchmarks.functionals.rows import errors, fitted, numbered, predicted
from interdomain.functionals import ByDegree, Value

SCALE = 30.0  # of both data sets: metres, and milligals
LAST_DEGREE = 2_190
"""The last degree of EIGEN-6C4, from which the data are computed."""
TEST_NODES = 50_000
EARTH, HEIGHT = 6.371e6, 1e4  # the radius, and the height of the gravity data, metres
GAMMA = 9.798e5  # milligals


class PowerLaw(idm.kernels.ZonalKernel):
    """A kernel of the globe with the eigenvalues ``(1 + l (l + 1))^-power`` from degree 2.

    Degrees 0 and 1 are zero: the mass and the centre of the earth are those of the ellipsoid.
    """

    radial_power = 0.0

    def __init__(self, power: float) -> None:
        super().__init__(inputs="degrees")
        self.power = gpflow.Parameter(power, transform=positive())

    def shape_function(self, t: Any) -> tf.Tensor:
        raise NotImplementedError("only the part of finite rank is used")

    def has_degree(self, dimension: int, degree: int) -> bool:
        return degree >= 2

    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        every = np.arange(2.0, LAST_DEGREE + 1)
        total = tf.reduce_sum((2 * every + 1) * self._powers(every))
        return self._powers(np.asarray(degrees, float)) / total

    def _powers(self, degrees: Array) -> tf.Tensor:
        return tf.exp(-self.power * np.log1p(degrees * (degrees + 1)))


def gravity_factors(max_degree: int) -> Array:
    """The disturbance of gravity 10 km above the ellipsoid in milligals, for each degree of the
    geoid in metres, in spherical approximation."""
    degrees, radius = np.arange(max_degree + 1.0), EARTH + HEIGHT
    return np.asarray(GAMMA * (degrees + 1) / radius * (EARTH / radius) ** (degrees + 1))


def normal_gravity(latitude: Array) -> Array:
    """The gravity of the ellipsoid WGS84 at the height of the data, in milligals."""
    axis, flattening, rotation, mass = 6_378_137.0, 1 / 298.257223563, 7.292115e-5, 3.986004418e14
    squared = np.square(np.sin(np.radians(latitude)))
    eccentricity = flattening * (2 - flattening)
    m = rotation**2 * axis**3 * (1 - flattening) / mass
    ground = 9.7803253359 * (1 + 0.00193185265241 * squared) / np.sqrt(1 - eccentricity * squared)
    slope = 1 + flattening + m - 2 * flattening * squared
    found = ground * (1 - 2 * slope * HEIGHT / axis + 3 * (HEIGHT / axis) ** 2)
    return np.asarray(1e5 * found)


def nodes(data_dir: str | None) -> tuple[Array, Array, Array, Array]:
    """The nodes of a grid of half a degree without the poles: latitude and longitude ``[N, 2]``.

    Also, ``[N]`` each, their share of the area, the disturbance of gravity in milligals, and the
    height of the geoid in metres.
    """
    arrays = load_arrays("earth_gravity_geoid_30min", data_dir)
    latitude, longitude = (np.asarray(arrays[name], float) for name in ("lat", "lon"))
    gravity = np.asarray(arrays["gravity_tenth_mgal_minus_974748p6"], float) / 10 + 974_748.6
    disturbance = gravity - normal_gravity(latitude)[:, None]
    heights = np.asarray(arrays["geoid_decimetres"], float) / 10
    X = rows_of(latitude, longitude)
    inside = np.abs(X[:, 0]) < 90
    areas = np.cos(np.radians(X[inside, 0]))
    return X[inside], areas / areas.sum(), disturbance.ravel()[inside], heights.ravel()[inside]


def geoid(
    *, max_degree: int, rows: int, heights: int, seed: int, data_dir: str | None, **_: Any
) -> dict[str, Any]:
    """The geoid from gravity at nodes that are drawn by area, and from its height at a few.

    The degrees above ``max_degree`` are noise of the rows. A row of gravity has a weight by the
    area of its Voronoi cell: sums over rows are then close to integrals over the globe. In an
    integral, higher degrees are orthogonal to the harmonics and disturb none. The variance of the
    geoid in the higher degrees, by the trained power law, is a part of the bars.

    :param rows: the number of nodes with gravity; zero for all.
    :param heights: the number of nodes with the height of the geoid.
    """
    X, areas, gravity, truth = nodes(data_dir)
    rng = np.random.default_rng(seed)

    def drawn(count: int, *, again: bool = False) -> Any:
        return rng.choice(len(X), count, replace=again, p=areas)

    test = drawn(TEST_NODES, again=True)  # so that their errors have the weights of an integral
    chosen, few = drawn(rows or 1), drawn(heights or 1)[:heights]
    if rows:
        cells = SphericalVoronoi(unit_rows(X[chosen])).calculate_areas()
    else:
        chosen, cells = np.arange(len(X)), areas
    weights = np.r_[cells / cells.mean(), np.ones(heights)]
    kernel = PowerLaw(2.0)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree)
    data = (
        np.r_[numbered(X[chosen], 1), numbered(X[few], 0)],
        np.r_[gravity[chosen], truth[few]][:, None] / SCALE,
    )
    trained, found = fitted(
        data,
        idm.kernels.FiniteRank(kernel, harmonics),
        harmonics,
        [Value(), ByDegree(gravity_factors(max_degree))],
        noise_variance=[0.01, 0.5] if heights else 0.5,
        noise_weights=weights,
    )
    mean, variance = predicted(trained, X[test], 0)
    shares = kernel.variance_shares(3, LAST_DEGREE).numpy()
    beyond = float(kernel.variance.numpy() * shares[max_degree + 1 :].sum())
    return {
        **found,
        **errors(truth[test][:, None], SCALE * mean, SCALE**2 * (variance + beyond)),
        "mean_deviation": SCALE * float(np.sqrt(variance + beyond).mean()),
        "deviation_beyond": SCALE * beyond**0.5,
        "power": float(kernel.power.numpy()),
    }
