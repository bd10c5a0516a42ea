"""Fourier features inside of their interval: a constant, cosines, sines and polynomials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ..._arguments import Array
from ...core.averages import Average, Blur, Mean
from ...core.functionals import Derivative, LinearFunctional, Places
from ...core.wave_functionals import acted_values
from ...linalg.box_ends import slack_of
from . import polynomials

_FAR = 7.0
"""The reach of a blur in standard deviations: a share of 3e-12 is farther away."""


@dataclass(frozen=True, eq=False)
class Inside:
    """The features at places in their interval.

    :ivar lower: The lower end of the interval, which has the given length.
    :ivar angular_frequencies: The frequencies of the cosines and sines, ``[J]``.
    :ivar degree: The degree of the last polynomial.
    """

    lower: float
    length: float
    angular_frequencies: Array
    degree: int

    def at(self, x: tf.Tensor) -> tf.Tensor:
        """The features at x ``[batch..., N]``, ``[M, batch..., N]``."""
        waves = self._waves(x)
        if not self.degree:
            return waves
        return tf.concat([waves, polynomials.polynomials(self.degree, self._turns(x))], axis=0)

    def contains(self, functional: LinearFunctional | None, places: Places) -> tf.Tensor:
        """Whether a slope or an average needs f in the interval only, ``[n]``.

        :param places: Places with one input.
        """
        reach = tf.zeros_like(places.inputs)
        if isinstance(functional, Average):
            reach = functional.scales(places) * (0.5 if isinstance(functional, Mean) else _FAR)
        slack = float(slack_of(self.lower, self.lower + self.length, reach.dtype))
        distances = tf.abs(places.inputs - (self.lower + self.length / 2))
        return (distances + reach <= self.length / 2 + slack)[:, 0]

    def acted(self, functional: LinearFunctional | None, places: Places) -> tf.Tensor:
        """The slopes or averages of the features, ``[M, n]``.

        :param functional: A derivative or an average; None for zero.
        :param places: Places with one input.
        """
        x = places.inputs[:, 0]
        if functional is None:
            return tf.zeros_like(self.at(x))
        turns = np.arange(1, len(self.angular_frequencies) + 1)
        functions = np.concatenate([[0], 2 * turns - 1, 2 * turns])
        members, waves = np.argsort(functions), self._waves(x)
        values = acted_values(
            functional,
            functions[:, None],
            np.array([self.length]),
            places,
            lambda partners: tf.gather(waves, members[partners[:, 0]]),
        )
        if not self.degree:
            return values
        scale, order, spread = 2 / self.length, 0, tf.zeros([], x.dtype)
        if isinstance(functional, Derivative):
            order = functional.order
        elif isinstance(functional, Average):
            squares = tf.square(scale * functional.scales(places)[:, 0])
            spread = squares if isinstance(functional, Blur) else squares / 12
        others = polynomials.acted(self.degree, order, self._turns(x), spread)
        return tf.concat([values, scale**order * others], axis=0)

    def _waves(self, x: tf.Tensor) -> tf.Tensor:
        """The constant, cosines and sines."""
        w = tf.constant(self.angular_frequencies, x.dtype)
        angle = tf.tensordot(w, x - self.lower, axes=0)
        return tf.concat([tf.ones_like(x)[None], tf.cos(angle), tf.sin(angle)], axis=0)

    def _turns(self, x: tf.Tensor) -> tf.Tensor:
        """The numbers t, which are -1 and 1 at the interval's ends."""
        return (x - self.lower) * (2 / self.length) - 1
