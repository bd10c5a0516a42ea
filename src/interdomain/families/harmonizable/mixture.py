"""Harmonizable mixture kernels: Shen, Heinonen and Kaski 2019."""

from __future__ import annotations

from typing import Any, Literal

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType

from ..._arguments import integer, number
from .component import HarmonizableComponent
from .gaussian_factors import MixtureKernel
from .initialisation import guess_components


class HarmonizableMixture(MixtureKernel[HarmonizableComponent]):
    """A sum of windowed sinusoids about different centres (Shen et al. 2019, eq. 13).

    With enough components, the kernel approximates any real harmonizable covariance (Theorem 3):
    local patterns with different frequencies and smooth transitions. :meth:`from_data` finds
    centres, windows and frequencies in data, a far better start than random frequencies.

    Use one :class:`interdomain.inducing_variables.HarmonizableFourierFeatures` for each component,
    in a :class:`~interdomain.inducing_variables.SumInducingVariables`;
    ``HarmonizableFourierFeatures.for_kernel(kernel, num_frequencies)`` builds it. Other inducing
    variables, such as points, also work.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(0, 10, 200)[:, None]
    >>> Y = np.where(X < 5, np.sin(6 * X), np.sin(20 * X))
    >>> kernel = idm.kernels.HarmonizableMixture.from_data(
    ...     X, Y, num_components=4, num_frequencies=2
    ... )
    >>> len(kernel.kernels)
    4
    >>> Features = idm.inducing_variables.HarmonizableFourierFeatures
    >>> features = Features.for_kernel(kernel, num_frequencies=6)
    >>> model = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=0.1)
    >>> model.predict_f(X[:5])[0].shape
    TensorShape([5, 1])

    :param components: One :class:`HarmonizableComponent` or more, with equal numbers of columns.
    :raises ValueError: If the list is empty, or its entries are something else.
    """

    component_class = HarmonizableComponent

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        Y: TensorType,
        num_components: int,
        num_frequencies: int,
        *,
        centres: Literal["k-means", "grid"] = "k-means",
        active_dims: slice | list[int] | None = None,
        seed: int = 0,
        name: str | None = None,
    ) -> HarmonizableMixture:
        """Make a mixture from data, as a starting point for training.

        The window at each centre is about as wide as the distance to the nearest other centres.
        Its component gets the frequencies that explain most of the data under the window: the peaks
        of a periodogram of the windowed data, which may be gridded or scattered. Zero can be a
        frequency. Initially, the amplitudes of a component are independent and decorrelate over
        about the width of its window. The prior variance of the mixture, averaged over the rows, is
        the mean square of Y. If there are more than 4,000 rows, a random sample of them is used.

        :param X: Inputs ``[N, D]``, with the columns of ``active_dims`` only.
        :param Y: Outputs ``[N]`` or ``[N, P]``; for two classes, pass -1 and 1.
        :param num_components: The number of components; ``num_frequencies`` is for each of them.
        :param centres: "k-means", or "grid": the centres of equal cells of the box around the data.
        :raises ValueError: If a number is not positive or exceeds the number of rows; if shapes do
            not fit, an entry is not finite, a column of X is constant, or Y is zero everywhere; or
            if a grid cannot have that many cells.
        """
        guesses = guess_components(X, Y, num_components, num_frequencies, centres, seed)
        shared, parts = {"active_dims": active_dims}, []
        for centre, width, frequencies, variances in guesses:
            place: dict[str, Any] = {"centre": centre, "envelope": width, "lag": width, **shared}
            parts.append(HarmonizableComponent(frequencies, amplitudes=variances, **place))
        return cls(parts, name=name)

    @check_shapes("w: [n, D]", "v: [k, D]", "return: [n, k]")
    def generalized_spectral_density(self, w: TensorType, v: TensorType) -> tf.Tensor:
        """The generalized spectral density: a sum over the components (eq. 15)."""
        return tf.add_n([part.generalized_spectral_density(w, v) for part in self.components])

    @check_shapes("x: [n, D]", "w: [k, D]", "return: [n, k]")
    def wigner(self, x: TensorType, w: TensorType) -> tf.Tensor:
        """The Wigner distribution: a sum over the components (eq. 18)."""
        return tf.add_n([part.wigner(x, w) for part in self.components])


class LocallyStationaryGaussian(HarmonizableComponent):
    """A squared exponential under a Gaussian window (Shen et al. 2019, eq. 9).

    ``k(x, x') = variance exp(-2 pi^2 m^T envelope m) exp(-2 pi^2 t^T lag t)``, where m is the mean
    of x and x' minus ``centre``, and t their difference. It is a :class:`HarmonizableComponent`
    whose only frequency is zero and not trained.

    :param dimension: The number D of columns of X.
    :param variance: The variance at the centre, a positive number.
    :param centre: This and all further arguments are those of :class:`HarmonizableComponent`.
    :raises ValueError: As for :class:`HarmonizableComponent`, or if the variance is not positive.
    """

    def __init__(
        self,
        dimension: int = 1,
        *,
        variance: TensorType = 1.0,
        centre: TensorType = 0.0,
        envelope: TensorType = 0.1,
        lag: TensorType = 0.1,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        dimension = integer("dimension", dimension, at_least=1)
        super().__init__(
            np.zeros([1, dimension]),
            amplitudes=[number("variance", variance, above=0)],
            centre=centre,
            envelope=envelope,
            lag=lag,
            active_dims=active_dims,
            name=name,
        )
        gpflow.set_trainable(self.frequencies, False)

    @property
    def variance(self) -> tf.Tensor:
        """The variance at the centre."""
        return tf.reduce_sum(tf.square(self.amplitudes_real))
