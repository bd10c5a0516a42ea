"""Stationary kernels on the sphere: Matern and squared exponential, of the globe, too."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims
from scipy.special import gammaln

from ..._arguments import choice, number
from ...core.parameters import positive_parameter
from .kernel import ZonalKernel, ZonalKernelOfDimension, sphere_dimension
from .mathematics.heat_kernel import haversines
from .mathematics.laplace_beltrami import stationary_eigenvalues, stationary_kernel


class SphericalStationary(ZonalKernel, metaclass=abc.ABCMeta):
    """A zonal kernel with a lengthscale.

    :param lengthscale: Positive scalar, in radians on the sphere. A lengthscale that suits a
        circle makes the kernel almost constant on a sphere of higher dimension, because a random
        pair of points is then nearly always at a right angle. The default is therefore
        ``sqrt(2 / (d - 1))`` where the dimension d is known from ``weight_variances`` or
        ``active_dims`` (for lifted inputs, ``d - 1`` is the number of columns). It is 0.5 where d
        is not known, and on the globe.
    :param radial_power: The power of r r' in the kernel. One, the default, makes functions grow
        linearly away from the data, as in Dutordoir et al. 2020; zero keeps ``K(x, x)`` constant.
    :param variance: As for :class:`ZonalKernel`, as are the arguments after it.
    :raises ValueError: As :class:`ZonalKernel`; also if ``radial_power`` is negative.
    """

    def __init__(
        self,
        *,
        lengthscale: TensorType | None = None,
        radial_power: float = 1.0,
        variance: TensorType = 1.0,
        weight_variances: TensorType | None = None,
        bias_variance: TensorType | None = None,
        inputs: str = "euclidean",
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            variance=variance,
            weight_variances=weight_variances,
            bias_variance=bias_variance,
            inputs=inputs,
            active_dims=active_dims,
            name=name,
        )
        self.radial_power = number("radial_power", radial_power, at_least=0)
        length = self._default_lengthscale() if lengthscale is None else lengthscale
        remedy = "scale the columns with weight_variances=[...]"
        self.lengthscale = positive_parameter("lengthscale", length, remedy=remedy)

    def _default_lengthscale(self) -> float:
        """Shorter on spheres of higher dimension."""
        if self.ard:
            size = self.weight_variances.shape[0]
        elif isinstance(self.active_dims, np.ndarray) and self.inputs != "degrees":
            size = len(self.active_dims)
        else:
            return 0.5
        return float(np.sqrt(2 / (self.lift.dimension(size, "active_dims") - 1)))


class LaplaceBeltrami(SphericalStationary, ZonalKernelOfDimension, metaclass=abc.ABCMeta):
    """A stationary kernel defined by its eigenvalues, which depend on the dimension:
    ``lambda_l ~ (2 nu / lengthscale^2 + l (l + d - 2))^(-nu - (d - 1) / 2)``.

    The eigenvalues are those of Dutordoir et al. 2020 (section 3.2 and appendix B.4), divided by
    their sum over all harmonics, so that kappa(1) = 1 and truncation plays no part in the prior.
    See :mod:`.laplace_beltrami` for how kappa itself is summed and how exactly.
    """

    nu: float
    """Smoothness, a half-integer or infinite: samples have derivatives of every order below nu."""

    def shape_in_dimension(self, t: tf.Tensor, dimension: int) -> tf.Tensor:
        return self._at_haversines((1 - t) / 2, dimension)

    @inherit_check_shapes
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        lengthscale = tf.convert_to_tensor(self.lengthscale)
        return stationary_eigenvalues(degrees, dimension, lengthscale, self.nu)

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        """In float64, and of angles that keep their digits: a kernel with a short lengthscale turns
        rounding errors of angles into a matrix that is not positive semi-definite."""
        return self._at_haversines(_haversines_of_pairs(unit, unit2), sphere_dimension(unit))

    def _at_haversines(self, halves: tf.Tensor, dimension: int) -> tf.Tensor:
        lengthscale = tf.convert_to_tensor(self.lengthscale)
        return stationary_kernel(halves, dimension, lengthscale, self.nu)


def _haversines_of_pairs(unit: tf.Tensor, unit2: tf.Tensor | None) -> tf.Tensor:
    """In float64, whatever the float type of the unit vectors."""
    vectors = [vector for vector in (unit, unit2) if vector is not None]
    if unit.dtype != tf.float64:
        vectors = [tf.math.l2_normalize(tf.cast(v, tf.float64), axis=-1) for v in vectors]
    return haversines(*vectors)


class SphericalMatern12(LaplaceBeltrami):
    """The Matern-1/2 kernel on the sphere: continuous, rough samples."""

    nu = 0.5


class SphericalMatern32(LaplaceBeltrami):
    """The Matern-3/2 kernel on the sphere: samples with one derivative."""

    nu = 1.5


class SphericalMatern52(LaplaceBeltrami):
    """The Matern-5/2 kernel on the sphere: samples with two derivatives."""

    nu = 2.5


class SphericalSquaredExponential(LaplaceBeltrami):
    """The squared exponential kernel on the sphere: smooth samples.

    Its eigenvalues are ``lambda_l ~ exp(-lengthscale^2 l (l + d - 2) / 2)``.
    """

    nu = np.inf


class ChordalSquaredExponential(SphericalStationary):
    """A squared exponential of the chord's length, ``kappa(t) = exp(-(1 - t) / lengthscale^2)``.

    With alpha = (d - 2) / 2, ``lambda_l = (2 lengthscale^2)^alpha Gamma(alpha + 1)
    exp(-1 / lengthscale^2) I_{l + alpha}(1 / lengthscale^2)``, with the modified Bessel function I.
    """

    @inherit_check_shapes
    def shape_function(self, t: TensorType) -> tf.Tensor:
        gap = tf.minimum(tf.convert_to_tensor(t) - 1, 0)  # rounding errors are large at the end
        return tf.exp(gap / tf.square(self.lengthscale))

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        """Of angles that keep their digits: 1 - t in float32 is rounded by 6e-8, which a squared
        lengthscale of 1e-4 makes one of 6e-4."""
        halves = tf.cast(_haversines_of_pairs(unit, unit2), self.lengthscale.dtype)
        return tf.exp(-2 * tf.maximum(halves, 0) / tf.square(self.lengthscale))

    @inherit_check_shapes
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        alpha = (dimension - 2) / 2
        squared = tf.square(tf.cast(self.lengthscale, tf.float64))
        log_bessel = tfp.math.log_bessel_ive(np.asarray(degrees, float) + alpha, 1 / squared)
        log_values = alpha * tf.math.log(2 * squared) + gammaln(alpha + 1) + log_bessel
        return tf.cast(tf.exp(log_values), self.variance.dtype)

    def _default_lengthscale(self) -> float:
        return 1.0


class GlobeStationary(SphericalStationary, metaclass=abc.ABCMeta):
    """A stationary kernel of the globe with ``inputs="degrees"``: on the sphere S^2 itself, without
    a bias, a seam at the date line, or poles that the kernel knows of.

    :param variance: ``K(x, x)``.
    :param lengthscale: In radians, 0.5 by default; 0.1 is 637 km on the earth.
    :param active_dims: The columns (latitude, longitude) of X, in this order: ``[1, 0]`` of data
        that begin with the longitude.
    :raises ValueError: As :class:`~interdomain.kernels.ZonalKernel`, or if ``inputs`` is not
        "degrees".
    """

    def __init__(
        self,
        *,
        variance: TensorType = 1.0,
        lengthscale: TensorType | None = None,
        inputs: str = "degrees",
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        remedy = "pass X in degrees, np.degrees(X), or another kernel of the sphere"
        super().__init__(
            lengthscale=lengthscale,
            variance=variance,
            inputs=choice("inputs", inputs, ("degrees",), remedy),
            active_dims=active_dims,
            name=name,
        )


class GlobeMatern12(GlobeStationary, SphericalMatern12):
    """The Matern-1/2 kernel of the globe: continuous, rough samples."""


class GlobeMatern32(GlobeStationary, SphericalMatern32):
    """The Matern-3/2 kernel of the globe: samples with one derivative.

    It is :class:`~interdomain.kernels.SphericalMatern32` with ``inputs="degrees"``, for rows of
    latitude and longitude. Spherical harmonics in dimension 3 do not depend on any parameter of it:
    the lengthscale is trained after one pass over the rows, however many they are.
    """


class GlobeMatern52(GlobeStationary, SphericalMatern52):
    """The Matern-5/2 kernel of the globe: samples with two derivatives."""


class GlobeSquaredExponential(GlobeStationary, SphericalSquaredExponential):
    """The squared exponential kernel of the globe: smooth samples."""
