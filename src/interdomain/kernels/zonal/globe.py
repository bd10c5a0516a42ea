"""Kernels of the globe: of latitude and longitude in degrees."""

from __future__ import annotations

import abc

from gpflow.base import TensorType
from gpflow.kernels.base import ActiveDims

from .spherical_stationary import (
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    SphericalSquaredExponential,
    SphericalStationary,
)


class GlobeStationary(SphericalStationary, metaclass=abc.ABCMeta):
    """A stationary kernel of the globe with ``inputs="degrees"``: on the sphere S^2 itself, without
    a bias, a seam at the date line, or poles that the kernel knows of.

    :param variance: Positive scalar, ``K(x, x)``.
    :param lengthscale: Positive scalar, in radians: 0.1 is 637 km on the earth. 0.5 by default.
    :param active_dims: The columns (latitude, longitude) of X, in this order: ``[1, 0]`` of data
        that begin with the longitude.
    :raises ValueError: As :class:`~interdomain.kernels.ZonalKernel`.
    """

    def __init__(
        self,
        *,
        variance: TensorType = 1.0,
        lengthscale: TensorType | None = None,
        active_dims: ActiveDims | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            variance=variance,
            lengthscale=lengthscale,
            inputs="degrees",
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

    >>> import numpy as np, interdomain as idm
    >>> points = np.random.default_rng(0).normal(size=[500, 3])
    >>> X = idm.sphere.latitude_longitude(points).numpy()  # latitude, longitude in degrees
    >>> Y = np.sin(np.radians(2 * X[:, :1])) * np.cos(np.radians(X[:, 1:]))
    >>> kernel = idm.kernels.GlobeMatern32()
    >>> harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=12)
    >>> harmonics.dimension, harmonics.num_inducing
    (3, 169)
    >>> prior = idm.kernels.FiniteRank(kernel, harmonics)
    >>> model = idm.models.StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.01)
    >>> model.feature_parameters
    {}
    >>> fitted = idm.training.fit_sgpr(model, progress=False)
    >>> mean, _ = model.predict_f(np.array([[10.0, 180.0], [10.0, -180.0]]))
    >>> bool(abs(mean[0, 0] - mean[1, 0]) < 1e-12)
    True
    """


class GlobeMatern52(GlobeStationary, SphericalMatern52):
    """The Matern-5/2 kernel of the globe: samples with two derivatives."""


class GlobeSquaredExponential(GlobeStationary, SphericalSquaredExponential):
    """The squared exponential kernel of the globe: smooth samples."""
