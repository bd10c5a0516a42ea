"""Linear functionals of the sines and cosines of a box, in closed form.

A functional L maps a wave to a multiple of a wave: ``L phi_m = c_m phi_p(m)``. The slope along a
column maps a cosine of angular frequency k to -k times the sine. The mean over a width w multiplies
a wave by ``sin(k w / 2) / (k w / 2)``. A blur of variance s^2 multiplies it by
``exp(-k^2 s^2 / 2)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from .._arguments import Array, IntArray
from .averages import Average, Blur
from .functionals import Derivative, LinearFunctional, Places, Value


class ActedWaves(NamedTuple):
    """The waves that a functional makes of M waves.

    :ivar factors: The factors c of the waves, ``[M]``.
    :ivar functions: The functions of the new waves, as in :class:`.BoxWaves`, ``[M, D]``.
    """

    factors: Array
    functions: IntArray


def acted_waves(
    functional: LinearFunctional, functions: IntArray, periods: Array
) -> ActedWaves | None:
    """The factors and new waves of a functional; None if the functional has no such form, or if
    factors differ between rows.

    :param functional: A functional of the columns of the waves that is no sum.
    :param functions: The functions of the waves in each column, as in :class:`.BoxWaves`,
        ``[M, D]``.
    :param periods: The lengths of the box, ``[D]``.
    """
    if isinstance(functional, Value):
        return ActedWaves(np.ones(len(functions)), functions)
    if isinstance(functional, Derivative):
        return _derivative(functional, functions, periods)
    if isinstance(functional, Average) and not functional.width_columns:
        with tf.init_scope():
            anywhere = tf.zeros([1, functions.shape[1]], tf.float64)
            places = Places(anywhere, anywhere)
            factors = _average(functional, functions, periods, places).numpy()
        return ActedWaves(factors[:, 0], functions)
    return None


def acted_values(
    functional: LinearFunctional | None,
    functions: IntArray,
    periods: Array,
    places: Places,
    waves: Callable[[IntArray], tf.Tensor],
) -> tf.Tensor | None:
    """The functional of waves at places, ``[M, n]``; None if there is no closed form.

    :param functional: A functional that is no sum; None for zero.
    :param places: The places in the columns of the waves.
    :param waves: A function from functions ``[M, D]`` to the waves at the places, ``[M, n]``.
    """
    if functional is None:
        return tf.zeros_like(waves(functions))
    if isinstance(functional, Average):
        return _average(functional, functions, periods, places) * waves(functions)
    acted = acted_waves(functional, functions, periods)
    if acted is None:
        return None
    return tf.constant(acted.factors, places.inputs.dtype)[:, None] * waves(acted.functions)


def _derivative(functional: Derivative, functions: IntArray, periods: Array) -> ActedWaves:
    along = functions[:, functional.column]
    rates = 2 * np.pi / periods[functional.column] * ((along + 1) // 2)
    if functional.order > 1:
        return ActedWaves(-np.square(rates), functions)
    is_cosine = along % 2 == 1
    partners = functions.copy()
    partners[:, functional.column] = np.where(is_cosine, along + 1, np.maximum(along - 1, 0))
    return ActedWaves(np.where(is_cosine, -rates, rates), partners)


def _average(functional: Average, functions: IntArray, periods: Array, places: Places) -> tf.Tensor:
    """The factors of waves in averages, ``[M, n]``, or ``[M, 1]`` if they are equal at all
    places."""
    scales, width = functional.scales(places), functions.shape[1]
    factors = tf.ones([len(functions), 1], scales.dtype)
    for column in np.flatnonzero(functional.is_averaged(width)):
        turns, members = np.unique((functions[:, column] + 1) // 2, return_inverse=True)
        rates = tf.constant(2 * np.pi / periods[column] * turns, scales.dtype)
        angles = rates[:, None] * scales[:, column]
        of_turns = tf.exp(-tf.square(angles) / 2) if isinstance(functional, Blur) else _sinc(angles)
        factors *= tf.gather(of_turns, members.reshape(-1))
    return factors


def _sinc(angles: tf.Tensor) -> tf.Tensor:
    """The means of cosines over intervals of these lengths around zero."""
    is_zero = tf.equal(angles, 0)
    halves = tf.where(is_zero, tf.ones_like(angles), angles / 2)
    return tf.where(is_zero, tf.ones_like(angles), tf.sin(halves) / halves)
