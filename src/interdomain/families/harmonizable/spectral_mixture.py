"""The spectral mixture kernel: Wilson and Adams 2013."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.utilities import positive

from ..._arguments import finite_array, number
from ...core.diagonals import UniformVariance
from .gaussian_factors import (
    MixtureComponent,
    MixtureKernel,
    as_definite,
    definite_parameter,
    normal_densities,
    scaled_matrix,
    turns,
)
from .initialisation import guess_peaks


class SpectralComponent(UniformVariance, MixtureComponent):
    """A cosine times a squared exponential: a Gaussian peak of the spectrum, and its mirror image.

    ``k(x, x') = variance exp(-2 pi^2 t^T lag t) cos(2 pi frequency^T t)`` for ``t = x - x'`` (Shen
    et al. 2019, eq. 4). It equals a :class:`HarmonizableComponent` of one frequency without a
    window (``envelope=None``), so it has no Fourier features.

    :param frequency: The centre of the peak, ``[D]``, in cycles per unit of x.
    :param variance: The variance, a positive number.
    :param lag: Sigma, the positive-definite covariance of the peak: a number, a diagonal ``[D]`` or
        a matrix ``[D, D]``.
    :raises ValueError: If an argument is not as above, or not finite.
    """

    def __init__(
        self,
        frequency: TensorType,
        *,
        variance: TensorType = 1.0,
        lag: TensorType = 0.1,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        values = np.atleast_1d(finite_array("frequency", frequency, (0, 1), "a number or [D]"))
        self.frequency, self.dimension = gpflow.Parameter(values), len(values)
        power = number("variance", variance, above=0)
        self.variance = gpflow.Parameter(power, transform=positive())
        self.lag = definite_parameter(as_definite("lag", lag, len(values)), "lag")

    def total_variance(self) -> tf.Tensor:
        return tf.convert_to_tensor(self.variance)

    @check_shapes("w: [k, D]", "return: [k]")
    def spectral_density(self, w: TensorType) -> tf.Tensor:
        """The density ``variance (N(w | frequency, lag) + N(w | -frequency, lag)) / 2`` (eq. 7)."""
        w = tf.cast(tf.convert_to_tensor(w), gpflow.default_float())
        means = tf.stack([tf.convert_to_tensor(self.frequency), -self.frequency])
        densities = normal_densities(w, means, self.lag_matrix())
        return self.variance * tf.reduce_mean(densities, axis=1)

    def _waves(self, *inputs: TensorType) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]]:
        columns, deviation = [self.seen(X) for X in inputs], tf.sqrt(self.variance)
        pairs = [(X, tf.concat(turns(X, self.frequency[None, :]), axis=-1)) for X in columns]
        return self.lag_matrix(), [(X, deviation * waves) for X, waves in pairs]

    def lag_matrix(self) -> tf.Tensor:
        """The covariance of the peak, ``[D, D]``."""
        lag = tf.convert_to_tensor(self.lag)
        return scaled_matrix(lag, tf.ones([self.dimension], lag.dtype))


class SpectralMixture(MixtureKernel[SpectralComponent]):
    """A stationary kernel whose spectrum is a mixture of Gaussians (Wilson and Adams, *Gaussian
    process kernels for pattern discovery and extrapolation*, 2013; Shen et al. 2019, eq. 4).

    It is the limit of a :class:`HarmonizableMixture` with infinitely wide windows. A stationary
    process has no Fourier transform, so its inducing variables are points: of the whole kernel, or
    of each component (:class:`interdomain.inducing_variables.SumInducingVariables`).

    :param components: A :class:`SpectralComponent` for each peak, with equal numbers of columns.
    :raises ValueError: If the list is empty, or its entries are something else.
    """

    component_class = SpectralComponent

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        Y: TensorType,
        num_components: int,
        *,
        active_dims: slice | list[int] | None = None,
        seed: int = 0,
        name: str | None = None,
    ) -> SpectralMixture:
        """Make a mixture with the frequencies that explain most of the data; one may be zero.

        Initially, the components decorrelate over the standard deviation of X, and the prior
        variance is the mean square of Y. See :meth:`HarmonizableMixture.from_data`.

        :param X: Inputs ``[N, D]``, with the columns of ``active_dims`` only.
        :param Y: Outputs ``[N]`` or ``[N, P]``.
        :param num_components: The number of components, of one frequency each.
        :raises ValueError: As for :meth:`HarmonizableMixture.from_data`.
        """
        frequencies, powers, widths = guess_peaks(X, Y, num_components, seed)
        shared: dict[str, Any] = {"lag": 1 / np.square(2 * np.pi * widths)}
        shared["active_dims"] = active_dims
        peaks = zip(frequencies, powers, strict=True)
        return cls([SpectralComponent(w, variance=v, **shared) for w, v in peaks], name=name)

    @check_shapes("w: [k, D]", "return: [k]")
    def spectral_density(self, w: TensorType) -> tf.Tensor:
        """The spectral density at w: the sum over the components (eq. 7)."""
        return tf.add_n([part.spectral_density(w) for part in self.components])

    @check_shapes("x: [n, D]", "w: [k, D]", "return: [n, k]")
    def wigner(self, x: TensorType, w: TensorType) -> tf.Tensor:
        """The Wigner distribution: the spectral density, repeated for every location."""
        return tf.broadcast_to(self.spectral_density(w), [tf.shape(x)[0], tf.shape(w)[0]])
