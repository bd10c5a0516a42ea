"""Points on the globe: latitude and longitude in degrees, and unit vectors in R^3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array, IntArray, warn
from ....linalg.periodic import products
from ....linalg.wave_tables import BoxWaves

_NEGLIGIBLE = 1e-15
"""The relative size, in an array, below which a coefficient is a rounding error."""


@check_shapes("latitude_longitude: [batch..., 2]", "return: [batch..., 3]")
def unit_vectors(latitude_longitude: Any) -> tf.Tensor:
    """Unit vectors of points on the globe, ``(cos(lat) cos(lon), cos(lat) sin(lon), sin(lat))``.

    Angles are reduced by quarters of a turn before the sine and cosine. So longitudes of 180 and
    -180 degrees give identical results, and a pole is exactly ``(0, 0, 1)`` or ``(0, 0, -1)`` for
    any longitude. The function can be compiled, and gradients exist everywhere.

    >>> import interdomain as idm
    >>> idm.sphere.unit_vectors([[90.0, 12.0], [0.0, 180.0], [0.0, -180.0]]).numpy().tolist()
    [[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]

    :param latitude_longitude: Latitude, from -90 to 90, and longitude, any number, in degrees.
    :return: Unit vectors in the float type of the argument, float64 for integers and lists. The
        axes point to longitudes 0 and 90 degrees east on the equator, and to the north pole.
    :raises ValueError: If a latitude is not a number from -90 to 90. Tensors without known values,
        in a function that is compiled, are not checked.
    :warns UserWarning: If the angles look like radians.
    """
    X = _as_floats(latitude_longitude)
    values = tf.get_static_value(X)
    if values is not None:
        check_latitude_longitude("latitude_longitude", values)
        warn_of_radians("latitude_longitude", values)
    return on_the_globe(X)


@check_shapes("unit: [batch..., 3]", "return: [batch..., 2]")
def latitude_longitude(unit: Any) -> tf.Tensor:
    """Latitude and longitude in degrees of vectors in R^3: the inverse of :func:`unit_vectors`.

    :param unit: Vectors of any positive length.
    :return: Latitude from -90 to 90, and longitude from -180 to 180 (arbitrary at a pole).
    """
    unit = _as_floats(unit)
    x, y, z = unit[..., 0], unit[..., 1], unit[..., 2]
    latitude = tf.atan2(z, tf.sqrt(x * x + y * y))
    return tf.stack([latitude, tf.atan2(y, x)], axis=-1) * (180 / np.pi)


def on_the_globe(X: tf.Tensor) -> tf.Tensor:
    """The :func:`unit_vectors` of a tensor of floats, without checks. A latitude above 90 degrees
    gives a point on the other side of the pole."""
    # An angle is a whole number of quarter turns, which is exact, plus at most 45 degrees.
    quarters = tf.stop_gradient(tf.round(X / 90))
    rest = (X - 90 * quarters) * (np.pi / 180)
    sine, cosine = tf.sin(rest), tf.cos(rest)
    place = tf.math.floormod(quarters, 4)  # quarters stay floats: they may overflow an integer
    swapped = tf.math.floormod(quarters, 2) > 0
    sine, cosine = tf.where(swapped, cosine, sine), tf.where(swapped, sine, cosine)
    # Adding zero removes the sign of a negative zero.
    sine = tf.where(place >= 2, -sine, sine) + 0.0
    cosine = tf.where((place == 1) | (place == 2), -cosine, cosine) + 0.0
    along, height = cosine[..., :1], sine[..., :1]
    return tf.concat([along * cosine[..., 1:], along * sine[..., 1:], height], axis=-1)


def fourier_series(
    harmonics: Callable[[tf.Tensor], tf.Tensor], degrees: IntArray, columns: IntArray
) -> BoxWaves:
    """The double Fourier series of spherical harmonics, as waves of latitude and longitude.

    A harmonic of order m is a function of the latitude times ``cos(m lon)`` or ``sin(m lon)``. Past
    the pole, it continues along the meridian of ``lon + 180``, with the sign ``(-1)^m``. So it has
    a period of 360 degrees in the angle from the pole. It is a sum of cosines for even m, and of
    sines for odd m, up to its degree (Orszag 1974).

    :param harmonics: A function from latitudes and longitudes ``[N, 2]`` to harmonics ``[M, N]``.
    :param degrees: The orders m and the degrees of the harmonics, ``[M, 2]``.
    :param columns: The columns of X with latitude and longitude.
    """
    orders, number = degrees[:, 0], int(degrees[:, 1].max()) + 1
    angles = 180 / number * np.arange(number + 1)  # from the north pole

    def at_longitude(longitude: float) -> Array:
        places = np.stack([90 - angles, np.full_like(angles, longitude)], axis=1)
        return np.array(harmonics(tf.constant(places)))

    along = at_longitude(0.0)
    is_sine = np.zeros(len(orders), bool)
    halvings = np.ceil(np.log2(np.maximum(orders, 1)))
    for halving in np.unique(halvings):
        # Each order m uses a longitude with m lon between 45 and 90 degrees.
        some, longitude = (halvings == halving) & (orders > 0), 90 * 0.5**halving
        turns = np.radians(orders[some] * longitude)[:, None]
        sines = (at_longitude(longitude)[some] - along[some] * np.cos(turns)) / np.sin(turns)
        is_sine[some] = np.abs(sines).max(axis=1) > np.abs(along[some]).max(axis=1)
        along[some] = np.where(is_sine[some, None], sines, along[some])
    is_odd = orders % 2 == 1
    coefficients = np.zeros([len(orders), number])
    coefficients[~is_odd] = scipy.fft.dct(along[~is_odd], type=1)[:, :-1] / number
    coefficients[~is_odd, 0] /= 2
    if number > 1:  # against the latitude
        coefficients[is_odd, 1:] = -scipy.fft.dst(along[is_odd, 1:-1], type=1) / number
    kept = np.abs(coefficients) > _NEGLIGIBLE * np.abs(coefficients).max()
    features, frequencies = np.nonzero(kept)
    latitude_functions = np.where(frequencies > 0, 2 * frequencies - 1 + is_odd[features], 0)
    longitude_functions = np.where(orders > 0, 2 * orders - 1 + is_sine, 0)[features]
    both = np.stack([latitude_functions, longitude_functions], axis=1)
    functions, waves = np.unique(both, axis=0, return_inverse=True)
    entries, shape = (features, waves.reshape(-1)), (len(orders), len(functions))
    combined = scipy.sparse.csr_array((coefficients[kept], entries), shape)
    return BoxWaves(columns, np.array([90.0, 0.0]), np.full(2, 360.0), functions, combined)


def double_waves(series: BoxWaves, latitude_longitude: tf.Tensor, functions: IntArray) -> tf.Tensor:
    """Waves of amplitude one in the box of a :func:`fourier_series`, ``[W, n]``.

    :param functions: The functions of the waves, as in :class:`.BoxWaves`, ``[W, 2]``.
    """
    turns = (latitude_longitude - tf.constant(series.lower, latitude_longitude.dtype)) / 360
    norms = tf.constant(0.5 ** (np.count_nonzero(functions, axis=1) / 2), turns.dtype)
    return norms[:, None] * products(turns, functions)


def weighted(combined: Any, waves: tf.Tensor) -> tf.Tensor:
    """The features ``[M, n]`` that combine waves ``[W, n]`` with sparse weights ``[M, W]``."""
    parts = combined.tocoo()
    places = np.stack([parts.row, parts.col], axis=1).astype(np.int64)
    matrix = tf.SparseTensor(places, tf.constant(parts.data, waves.dtype), parts.shape)
    return tf.sparse.sparse_dense_matmul(matrix, waves)


def check_latitude_longitude(name: str, X: Array) -> None:
    """Check that the first column has latitudes from -90 to 90 degrees; a ValueError otherwise."""
    latitudes = np.asarray(X)[..., 0]
    beyond = np.count_nonzero(~(np.abs(latitudes) <= 90))
    if beyond:
        raise ValueError(
            f"{name} must have latitudes from -90 to 90 degrees in its first column, found "
            f"{np.min(latitudes):.6g} to {np.max(latitudes):.6g} there, {beyond:,} of "
            f"{latitudes.size:,} beyond; pass latitude and longitude in this order."
        )


def warn_of_radians(name: str, X: Array) -> None:
    """Warn if there are several points and all of them would be valid in radians."""
    X = np.asarray(X).reshape([-1, 2])
    varies = len(X) > 1 and np.all(np.ptp(X, axis=0) > 0) and np.any(X != np.round(X))
    latitude, longitude = np.max(np.abs(X), axis=0, initial=0)
    if varies and latitude <= np.pi / 2 and longitude <= 2 * np.pi:
        warn(
            f"{name}: latitudes up to {latitude:.3g} and longitudes up to {longitude:.3g} degrees "
            "look like radians; pass degrees, e.g. numpy.degrees(X). (Points that are all so near "
            "to latitude 0, longitude 0 are right.)"
        )


def _as_floats(X: Any) -> tf.Tensor:
    known = tf.is_tensor(X) or isinstance(X, tf.Variable)
    X = tf.convert_to_tensor(X if known else np.asarray(X))
    return X if X.dtype.is_floating else tf.cast(X, tf.float64)
