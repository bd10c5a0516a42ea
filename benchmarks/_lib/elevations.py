"""Elevations of the earth, or of synthetic hills, at latitudes and longitudes of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._lib.data import Array, load_arrays
from benchmarks._lib.race import Rows

TRAINING_FRACTION, TEST_FRACTION = 0.72, 0.2


def grid(data: str, data_dir: str | None, every: int) -> tuple[Array, Array, Array]:
    """Latitudes [H], longitudes [W] from -180 to 180, and elevations [H, W] in metres.

    :param every: use every so many rows and columns.
    """
    if data == "synthetic":
        latitude = np.linspace(-89.5, 89.5, 180)[::every]
        longitude = np.linspace(-179.5, 179.5, 360)[::every]
        return latitude, longitude, synthetic(latitude, longitude)
    arrays = load_arrays(data, data_dir)
    longitude = (np.asarray(arrays["lon"], float) + 180) % 360 - 180
    order = np.argsort(longitude)
    heights = np.asarray(arrays["elevation"], float)[:, order]
    latitude = np.asarray(arrays["lat"], float)
    return latitude[::every], longitude[order][::every], heights[::every, ::every]


def synthetic(latitude: Array, longitude: Array) -> Array:
    """Hills around random points of the sphere, with one hill at each pole."""
    unit = unit_rows(rows_of(latitude, longitude))
    rng = np.random.default_rng(0)
    centres = np.concatenate([[[0, 0, 1], [0, 0, -1], [-1, 0, 0]], rng.normal(size=(60, 3))])
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    hills = np.exp(12 * (unit @ centres.T - 1)) @ rng.normal(scale=2_000, size=len(centres))
    return np.asarray(hills.reshape(len(latitude), len(longitude)))


def rows_of(latitude: Array, longitude: Array) -> Array:
    """The points of the grid, [H W, 2]."""
    return np.stack(np.meshgrid(latitude, longitude, indexing="ij"), axis=-1).reshape(-1, 2)


def unit_rows(X: Array) -> Array:
    import interdomain as idm

    return np.asarray(idm.sphere.unit_vectors(X))


def split(num_rows: int, seed: int) -> tuple[Any, Any]:
    """Row numbers for training (72%) and testing (20%), as in `elevation`."""
    order = np.random.default_rng(seed).permutation(num_rows)
    return order[: round(TRAINING_FRACTION * num_rows)], order[-round(TEST_FRACTION * num_rows) :]


def jacksboro() -> Array:
    """The mountains that ship with matplotlib, [344, 403] metres, north first."""
    from matplotlib.cbook import get_sample_data

    with get_sample_data("jacksboro_fault_dem.npz") as file:
        return np.asarray(file["elevation"], float)


def mountains(every: int, seed: int) -> tuple[Rows, Rows]:
    """Training rows and a tenth of test rows of `jacksboro`: standardised coordinates [N, 2] and
    elevations [N, 1].

    :param every: use every so many rows and columns of the grid.
    """
    heights = jacksboro()[::every, ::every]
    return _apart(heights, np.random.default_rng(seed).uniform(size=heights.size) < 0.1)


def mountains_with_holes(seed: int, diameters: Array) -> tuple[Rows, Rows]:
    """Training rows of `mountains` outside of round holes, and test rows inside of the holes.

    :param diameters: diameters of the holes, pixels; the holes are inside the map and disjoint.
    """
    heights, rng = jacksboro(), np.random.default_rng(seed)
    rows, columns = np.indices(heights.shape)
    inside, around = np.zeros((2, *heights.shape), bool)
    for radius in sorted(np.asarray(diameters) / 2, reverse=True):
        while True:
            row, column = (rng.uniform(radius, size - 1 - radius) for size in heights.shape)
            distances = np.hypot(rows - row, columns - column)
            if not np.any(around & (distances <= radius)):
                break
        inside |= distances <= radius
        around |= distances <= 2 * radius
    return _apart(heights, inside.ravel())


def _apart(heights: Array, test: Any) -> tuple[Rows, Rows]:
    rows, columns = np.indices(heights.shape)
    X = np.stack([columns.ravel(), -rows.ravel()], axis=1).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    Y = heights.reshape(-1, 1)
    Y = (Y - Y[~test].mean()) / Y[~test].std()
    return (X[~test], Y[~test]), (X[test], Y[test])


def globe(max_degree: int) -> tuple[Any, Any]:
    """A Matern-3/2 kernel of the globe, and its harmonics."""
    import interdomain as idm

    kernel = idm.kernels.GlobeMatern32(lengthscale=0.2)
    return kernel, idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree)


def land_and_sea() -> Any:
    """A colour map of heights and depths, with the level of the sea in the middle."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    terrain = colormaps["terrain"]
    halves = [terrain(np.linspace(0, 0.17, 128)), terrain(np.linspace(0.25, 1, 128))]
    return ListedColormap(np.vstack(halves))
