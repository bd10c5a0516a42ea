"""Stationary kernels on the sphere and the globe: Matern and squared exponential kernels."""

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

from ..._arguments import choice, lacks, number
from ...core.parameters import positive_parameter
from .kernel import LENGTHSCALES, ZonalKernel, ZonalKernelOfDimension, sphere_dimension
from .mathematics.heat_kernel import haversines
from .mathematics.laplace_beltrami import stationary_eigenvalues, stationary_kernel


class SphericalStationary(ZonalKernel, metaclass=abc.ABCMeta):
    """A zonal kernel with a lengthscale; :class:`SphericalMatern52` describes the parameters."""

    @lacks("lengthscales", LENGTHSCALES)
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
        """The default lengthscale, which decreases with the dimension of the sphere."""
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

    The eigenvalues of Dutordoir et al. 2020 (section 3.2 and appendix B.4) are divided by their sum
    over all harmonics, so that kappa(1) = 1. See :mod:`.laplace_beltrami` for the accuracy.
    """

    nu: float
    """The smoothness, a half-integer or infinity: samples have derivatives of all orders < nu."""

    def shape_in_dimension(self, t: tf.Tensor, dimension: int) -> tf.Tensor:
        return self._at_haversines((1 - t) / 2, dimension)

    @inherit_check_shapes
    def eigenvalues(self, dimension: int, degrees: Sequence[int]) -> tf.Tensor:
        lengthscale = tf.convert_to_tensor(self.lengthscale)
        return stationary_eigenvalues(degrees, dimension, lengthscale, self.nu)

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        """The values of kappa for all pairs, from accurate angles in float64. With a short
        lengthscale, rounding errors of angles can make the matrix indefinite."""
        return self._at_haversines(_haversines_of_pairs(unit, unit2), sphere_dimension(unit))

    def _at_haversines(self, halves: tf.Tensor, dimension: int) -> tf.Tensor:
        lengthscale = tf.convert_to_tensor(self.lengthscale)
        return stationary_kernel(halves, dimension, lengthscale, self.nu)


def _haversines_of_pairs(unit: tf.Tensor, unit2: tf.Tensor | None) -> tf.Tensor:
    """The haversines of all pairs of unit vectors of any float type, in float64."""
    vectors = [vector for vector in (unit, unit2) if vector is not None]
    if unit.dtype != tf.float64:
        vectors = [tf.math.l2_normalize(tf.cast(v, tf.float64), axis=-1) for v in vectors]
    return haversines(*vectors)


class SphericalMatern12(LaplaceBeltrami):
    """The Matern-1/2 kernel on the sphere: continuous, rough samples. The parameters are those of
    :class:`SphericalMatern52`."""

    nu = 0.5


class SphericalMatern32(LaplaceBeltrami):
    """The Matern-3/2 kernel on the sphere: samples with one derivative. The parameters are those of
    :class:`SphericalMatern52`."""

    nu = 1.5


class SphericalMatern52(LaplaceBeltrami):
    """The Matern-5/2 kernel on the sphere: samples with two derivatives.

    :param lengthscale: Positive scalar, in radians on the sphere. In high dimension, random points
        are nearly always at right angles, and a lengthscale that suits a circle makes the kernel
        almost constant. The default is therefore ``sqrt(2 / (d - 1))`` if ``weight_variances`` or
        ``active_dims`` determine d; for lifted inputs, ``d - 1`` is the number of columns. It is
        0.5 if d is not known, and on the globe.
    :param radial_power: The power of r r' in the kernel. With 1, the default, functions grow
        linearly away from the data, as in Dutordoir et al. 2020; with 0, ``K(x, x)`` is constant.
    :param variance: This and all further arguments are those of :class:`ZonalKernel`.
    :raises ValueError: As for :class:`ZonalKernel`, or if ``radial_power`` is negative.
    """

    nu = 2.5


class SphericalSquaredExponential(LaplaceBeltrami):
    """The squared exponential kernel on the sphere: smooth samples.

    Its eigenvalues are ``lambda_l ~ exp(-lengthscale^2 l (l + d - 2) / 2)``. The parameters are
    those of :class:`SphericalMatern52`.
    """

    nu = np.inf


class ChordalSquaredExponential(SphericalStationary):
    """A squared exponential of the chord's length, ``kappa(t) = exp(-(1 - t) / lengthscale^2)``.

    With alpha = (d - 2) / 2, ``lambda_l = (2 lengthscale^2)^alpha Gamma(alpha + 1)
    exp(-1 / lengthscale^2) I_{l + alpha}(1 / lengthscale^2)``; I is the modified Bessel function.
    The parameters are those of :class:`SphericalMatern52`; the default lengthscale is 1.
    """

    @inherit_check_shapes
    def shape_function(self, t: TensorType) -> tf.Tensor:
        gap = tf.minimum(tf.convert_to_tensor(t) - 1, 0)  # t may exceed 1 by a rounding error
        return tf.exp(gap / tf.square(self.lengthscale))

    def _kappa_of_pairs(self, unit: tf.Tensor, unit2: tf.Tensor | None = None) -> tf.Tensor:
        """The values of kappa for all pairs, from accurate angles. In float32, the rounding error
        6e-8 of 1 - t would become 6e-4 for a squared lengthscale of 1e-4."""
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
    """A stationary kernel on the globe, for inputs in degrees: see :class:`GlobeMatern32`."""

    @lacks("lengthscales", "pass lengthscale instead, one number in radians")
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
    """The Matern-1/2 kernel of the globe: continuous, rough samples. The parameters are those of
    :class:`GlobeMatern32`."""


class GlobeMatern32(GlobeStationary, SphericalMatern32):
    """The Matern-3/2 kernel of the globe: samples with one derivative.

    It is :class:`~interdomain.kernels.SphericalMatern32` with ``inputs="degrees"``, for rows of
    latitude and longitude. It has no bias, and the date line and the poles are not special.
    Spherical harmonics in dimension 3 depend on no parameter of the kernel, so the lengthscale is
    trained after one pass over any number of rows.

    :param variance: The prior variance ``K(x, x)``.
    :param lengthscale: The lengthscale in radians, 0.5 by default; 0.1 is 637 km on the earth.
    :param active_dims: The columns of X with latitude and longitude, in this order: ``[1, 0]`` if
        the longitude is the first column. By default, X has only these two columns.
    :raises ValueError: As for :class:`ZonalKernel`, or if ``inputs`` is not "degrees".
    """


class GlobeMatern52(GlobeStationary, SphericalMatern52):
    """The Matern-5/2 kernel of the globe: samples with two derivatives. The parameters are those of
    :class:`GlobeMatern32`."""


class GlobeSquaredExponential(GlobeStationary, SphericalSquaredExponential):
    """The squared exponential kernel of the globe: smooth samples. The parameters are those of
    :class:`GlobeMatern32`."""
