"""Spherical harmonics under operators of degrees and, on the globe, as waves of two angles."""

from __future__ import annotations

import abc
from functools import cached_property, partial

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import IntArray, refusal
from ...core.acting import as_seen
from ...core.columns import seen_columns
from ...core.functionals import ByDegree, LinearFunctional, Places
from ...core.wave_functionals import acted_values
from ...linalg.wave_tables import BoxWaves
from ...sums.waves import Waves
from .kernel import ZonalKernel
from .lifts import Degrees, Euclidean
from .mathematics.globe import double_waves, fourier_series, on_the_globe, weighted
from .on_sphere import OnSphere


class ActedHarmonics(OnSphere):
    """Inducing variables that are spherical harmonics, on which functionals act in closed form.

    :ivar chains: See :class:`interdomain.inducing_variables.SphericalHarmonics`.
    """

    chains: IntArray

    @abc.abstractmethod
    def at(self, unit: TensorType, *, scale: TensorType | None = None) -> tf.Tensor:
        """The values of the harmonics at unit vectors ``[..., N, d]``, ``[M, ..., N]``."""

    def structure(self, kernel: ZonalKernel) -> Waves | None:
        """Waves in latitude and longitude (double Fourier series) on the globe; None otherwise."""
        columns = seen_columns(kernel, 2) if isinstance(kernel.lift, Degrees) else None
        if columns is None:
            return None
        return Waves(self._fourier_series._replace(columns=columns), self._degree_of_each)

    def acted_Kuf(
        self, kernel: ZonalKernel, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """Operators of degrees; on the globe, slopes, means and blurs along latitude and longitude,
        which continue past the poles and the date line."""
        if isinstance(functional, ByDegree):
            return self._by_degree(kernel, functional, places)
        if not isinstance(kernel.lift, Degrees):
            return None
        seen, selected = as_seen(functional, kernel, places)
        series = self._fourier_series
        waves = partial(double_waves, series, selected.inputs)
        acted = acted_values(seen, series.functions, series.periods, selected, waves)
        return None if acted is None else weighted(series.combined, acted)

    def _by_degree(self, kernel: ZonalKernel, functional: ByDegree, places: Places) -> tf.Tensor:
        if isinstance(kernel.lift, Euclidean):
            rule = "have no operator of degrees (ByDegree) with a kernel that is not of the globe"
            remedy = "pass a kernel of latitude and longitude, such as GlobeMatern32"
            raise refusal("functionals", rule, type(kernel).__name__, remedy)
        features = self.Kuf(kernel, places.inputs)
        factors = functional.of_degrees(self._degree_of_each)
        return tf.constant(factors, features.dtype)[:, None] * features

    @cached_property
    def _fourier_series(self) -> BoxWaves:
        """The harmonics as waves of latitude and longitude, the columns 0 and 1."""

        def harmonics(latitude_longitude: tf.Tensor) -> tf.Tensor:
            return self.at(on_the_globe(latitude_longitude))

        with tf.init_scope():
            return fourier_series(harmonics, np.abs(self.chains), np.arange(2))

    @property
    def _degree_of_each(self) -> IntArray:
        """The degree of each harmonic, ``[M]``."""
        degrees: IntArray = np.abs(self.chains[:, -1])
        return degrees
