"""The periodic summation of a stationary kernel."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel
from gpflow.utilities.ops import difference_matrix

from ..._arguments import Array, IntArray, check_num_inducing, filled_matrix, integer, number
from ...core.columns import as_rows, checked_columns, kernel_method
from ...core.diagonals import UniformVariance
from ...core.domains import check_box
from ...core.parameters import single_output
from ...linalg.periodic import theta_mixture
from .functions import largest_frequencies, num_functions, products
from .spectral_density import column_lengthscales, matern_order, spectral_density


class Periodized(UniformVariance):
    """A stationary kernel summed over all images of a box: ``k_P(tau) = sum_n k(tau + n P)``.

    It repeats with the periods ``P = upper - lower``, and its eigenfunctions are the sines and
    cosines of the box, with the kernel's spectral density S as eigenvalues (Poisson's summation
    formula),

        k_P(x - x') = sum_j S(2 pi j / P) cos(2 pi (j / P)^T (x - x')) / prod_i P_i,

    whatever the variance and the lengthscales are. So
    :class:`interdomain.inducing_variables.BoxFourierFeatures` have covariances with f that no
    parameter moves, and a diagonal Kuu: in :class:`interdomain.models.StructuredSGPR` one pass over
    the data serves all hyperparameters.

    For a prior that consists of the chosen waves alone, so that the features leave nothing out,
    pass this kernel and the features to :class:`~interdomain.kernels.FiniteRank`.

    Inside the box, it differs from the base kernel by the images. The image nearest to the data is
    as far away as the box is longer than the data, and the difference is about the value of the
    base kernel at that distance.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 2])
    >>> base = gpflow.kernels.Matern32(lengthscales=[0.1, 0.2])
    >>> kernel = idm.kernels.Periodized.from_data(base, X)
    >>> features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 200)
    >>> Y = np.sin(9 * X[:, :1]) * X[:, 1:]
    >>> model = idm.models.StructuredSGPR((X, Y), kernel, features, noise_variance=0.01)
    >>> list(model.feature_parameters)  # one pass serves all hyperparameters
    []

    :param base_kernel: ``Matern12``, ``Matern32``, ``Matern52`` or ``SquaredExponential`` of
        gpflow.kernels, with one lengthscale or one for each column, and without ``active_dims``.
        Sums and products of Periodized kernels take the place of those of base kernels.
    :param lower: The lower end of the box: a number for one column, or ``[D]``.
    :param upper: The upper end of the box, one period above ``lower``.
    :ivar lower: The lower end, ``[D]``; ``upper`` likewise.
    :ivar periods: The lengths of the box, ``[D]``.
    :ivar num_columns: The number D of columns of the box, after ``active_dims``.
    :raises ValueError: If the box is empty or not finite, the spectral density of the base kernel
        is not known, or it does not see the columns of the box.
    """

    def __init__(
        self,
        base_kernel: Kernel,
        lower: TensorType,
        upper: TensorType,
        *,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(active_dims=active_dims, name=name)
        self.lower, self.upper = check_box(lower, upper)
        self.periods = self.upper - self.lower
        self.num_columns = self.input_dim = len(self.lower)
        column_lengthscales(single_output("base_kernel", base_kernel), self.num_columns)
        self.base_kernel = base_kernel

    @classmethod
    def from_data(
        cls,
        base_kernel: Kernel,
        X: TensorType,
        *,
        margin: float = 4.0,
        active_dims: slice | list[int] | None = None,
        name: str | None = None,
    ) -> Periodized:
        """Make the kernel with a box around the data.

        :param base_kernel: Its present lengthscales set the size of the margin.
        :param X: ``[N, D]``, with the columns of ``active_dims`` only.
        :param margin: How much longer the box is than the data in each column, in lengthscales.
            Where training has brought lengthscales beyond half of the margin, the ends of the data
            see each other around the box: make the kernel anew with the trained base kernel.
        :raises ValueError: If X or the margin is not as above, or as the constructor.
        """
        values = filled_matrix("X", X, "a matrix [N, D]")
        single_output("base_kernel", base_kernel)
        lengthscales = column_lengthscales(base_kernel, values.shape[1])
        reach = number("margin", margin, above=0) * lengthscales / 2
        ends = np.min(values, axis=0) - reach, np.max(values, axis=0) + reach
        return cls(base_kernel, *ends, active_dims=active_dims, name=name)

    def largest_frequencies(self, num_features: int) -> IntArray:
        """The integer frequencies that carry most of the prior variance, ``[J, D]``.

        The choice depends on the present parameters of the kernel.

        :param num_features: The largest number of features that they may have together.
        :raises ValueError: If there are too many frequencies.
        """
        name = "num_features, or num_inducing"
        num_features = integer(name, num_features, at_least=1)
        check_num_inducing(name, num_features, "features")
        scale = np.prod(self.periods) * float(self.total_variance())

        def density(frequencies: IntArray) -> Array:
            return np.asarray(np.asarray(self.spectral_density(frequencies), float) / scale)

        return largest_frequencies(density, self.num_columns, num_features)

    @check_shapes("frequencies: [J, D]", "return: [J]")
    def spectral_density(self, frequencies: TensorType) -> tf.Tensor:
        """The spectral density S of the base kernel at ``2 pi j / P``, for integer vectors j."""
        angular = 2 * np.pi * np.asarray(frequencies) / self.periods
        return spectral_density(self.base_kernel, angular)

    @check_shapes("return: []")
    def total_variance(self) -> tf.Tensor:
        """``k_P(0)``, the prior variance everywhere."""
        return self._lag_covariances(tf.zeros([1, self.num_columns], gpflow.default_float()))[0]

    @check_shapes("frequencies: [J, D]", "return: []")
    def explained_variance(self, frequencies: Any) -> tf.Tensor:
        """The part of the prior variance that the waves of these frequencies carry."""
        frequencies = np.asarray(frequencies)
        density = self.spectral_density(frequencies)
        counts = tf.constant(num_functions(frequencies), density.dtype)
        return tf.reduce_sum(counts * density) / np.prod(self.periods)

    @check_shapes("X: [batch..., N, D]", "functions: [M, D]", "return: [M, batch..., N]")
    def waves(self, X: TensorType, functions: IntArray) -> tf.Tensor:
        """Orthonormal waves of the box, at inputs already sliced to ``active_dims``."""
        rows = as_rows(X, self.num_columns)
        turns = (rows - tf.constant(self.lower, rows.dtype)) / tf.constant(self.periods, rows.dtype)
        values = products(turns, functions, 1 / float(np.sqrt(np.prod(self.periods))))
        return tf.reshape(values, tf.concat([[len(functions)], tf.shape(X)[:-1]], axis=0))

    @kernel_method
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        lags = difference_matrix(self.seen(X), None if X2 is None else self.seen(X2))
        flat = tf.ensure_shape(tf.reshape(lags, [-1, self.num_columns]), [None, self.num_columns])
        return tf.reshape(self._lag_covariances(flat), tf.shape(lags)[:-1])

    def _lag_covariances(self, lags: tf.Tensor) -> tf.Tensor:
        """``sum_n k(lag + n * period)`` for all integer vectors n, ``[N]`` for lags ``[N, D]``."""
        base, periods = self.base_kernel, tf.constant(self.periods, lags.dtype)
        squares = tf.square(base.lengthscales / periods)
        return base.variance * theta_mixture(lags / periods, squares, matern_order(base))

    def seen(self, X: TensorType) -> tf.Tensor:
        remedy = "select them with the kernel's active_dims"
        return checked_columns(super().seen(X), self.num_columns, ", those of the box", remedy)
