"""Periodized kernels: the periodic summation of a stationary kernel."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel
from gpflow.utilities.ops import difference_matrix

from ..._arguments import (
    Array,
    IntArray,
    check_num_inducing,
    filled_matrix,
    finite_array,
    integer,
    number,
    refusal,
    short,
)
from ...core.columns import as_rows, checked_columns, kernel_method
from ...core.diagonals import UniformVariance
from ...core.domains import check_box
from ...core.parameters import single_output
from ...linalg.periodic import products, theta_mixture
from .functions import largest_frequencies, num_functions
from .spectral_density import column_lengthscales, matern_order, spectral_density


class Periodized(UniformVariance):
    """A stationary kernel made periodic on a box: ``k_P(tau) = sum_n k(tau + n P)``.

    The sum is over all integer vectors n, and the periods are ``P = upper - lower``. The
    eigenfunctions are the sines and cosines of the box; the eigenvalues are the spectral density S
    of the base kernel k (Poisson's summation formula),

        k_P(x - x') = sum_j S(2 pi j / P) cos(2 pi (j / P)^T (x - x')) / prod_i P_i.

    The eigenfunctions do not depend on the variance or the lengthscales. So
    :class:`interdomain.inducing_variables.BoxFourierFeatures` have a constant Kuf and a diagonal
    Kuu. :class:`interdomain.models.StructuredSGPR` then trains all hyperparameters after one pass
    over the data.

    :meth:`cycle` makes a kernel of a cycle, such as the hours of a day, whose rows may be anywhere.

    For a prior of finite rank, which consists of the chosen waves only, pass this kernel and the
    features to :class:`~interdomain.kernels.FiniteRank`.

    Between rows of the data, the kernel differs from the base kernel by about the base kernel's
    value at the margin: the length of the box minus the range of the data.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.random.default_rng(0).uniform(size=[500, 2])
    >>> base = gpflow.kernels.Matern32(lengthscales=[0.1, 0.2])
    >>> kernel = idm.kernels.Periodized.from_data(base, X)
    >>> features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, 200)
    >>> Y = np.sin(9 * X[:, :1]) * X[:, 1:]
    >>> model = idm.models.StructuredSGPR((X, Y), kernel, features, noise_variance=0.01)
    >>> list(model.feature_parameters)  # one pass is enough for all hyperparameters
    []

    :param base_kernel: ``Matern12``, ``Matern32``, ``Matern52`` or ``SquaredExponential`` of
        gpflow.kernels, with one lengthscale or one for each column, and without ``active_dims``.
        For other kernels, add and multiply Periodized kernels.
    :param lower: The lower end of the box: a number for one column, or ``[D]``.
    :param upper: The upper end of the box, one period above ``lower``.
    :ivar lower: The lower end of the box, ``[D]``; ``upper`` is the upper end, ``[D]``.
    :ivar periods: The lengths of the box, ``[D]``.
    :ivar num_columns: The number D of columns of the box, after ``active_dims``.
    :ivar longest: The lengthscales that the margin of :meth:`from_data` allows, ``[D]``.
    :ivar is_cycle: Whether :meth:`cycle` made the kernel. Rows may then be outside of the box.
    :raises ValueError: If the box is empty or not finite, or if the base kernel has an unknown
        spectral density or other columns than the box.
    """

    is_cycle = False
    longest: Array | None = None

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

        :param base_kernel: The base kernel; its current lengthscales set the size of the margin.
        :param X: ``[N, D]``, with the columns of ``active_dims`` only.
        :param margin: The length of the box minus the range of the data in each column, in
            lengthscales. If a trained lengthscale exceeds half of the margin, the two ends of the
            data are correlated around the box: make a new kernel with the trained base kernel.
        :raises ValueError: If X or the margin is not as above; also as for the constructor.
        """
        values = filled_matrix("X", X, "a matrix [N, D]")
        single_output("base_kernel", base_kernel)
        lengthscales = column_lengthscales(base_kernel, values.shape[1])
        reach = number("margin", margin, above=0) * lengthscales / 2
        ends = np.min(values, axis=0) - reach, np.max(values, axis=0) + reach
        kernel = cls(base_kernel, *ends, active_dims=active_dims, name=name)
        kernel.longest = np.maximum(reach, lengthscales)
        return kernel

    @property
    def fault_of_margin(self) -> str | None:
        """A message, if a lengthscale is so long that the ends of the data are correlated around
        the box; None for a box that :meth:`from_data` did not make."""
        if self.longest is None:
            return None
        lengths = column_lengthscales(self.base_kernel, self.num_columns)
        far = np.flatnonzero(lengths > self.longest)
        if not len(far):
            return None
        return (
            f"the trained lengthscale of column {far[0]} of the box, {lengths[far[0]]:.3g}, "
            f"exceeds half of the box's margin, {self.longest[far[0]]:.3g}, so that predictions "
            "at both ends of the data depend on each other; make the kernel, its features and the "
            "model again by Periodized.from_data(kernel.base_kernel, X)."
        )

    @classmethod
    def cycle(
        cls,
        base_kernel: Kernel,
        period: TensorType,
        *,
        start: TensorType = 0.0,
        active_dims: slice | list[int] | None = None,
    ) -> Periodized:
        """Make the kernel of a function that repeats, such as a daily cycle in a column of hours.

        Rows may be anywhere, many periods away from ``start``.

        >>> import gpflow, numpy as np, interdomain as idm
        >>> base = gpflow.kernels.Matern32(lengthscales=6.0)
        >>> daily = idm.kernels.Periodized.cycle(base, 24.0)
        >>> features = idm.inducing_variables.BoxFourierFeatures.for_kernel(daily, 9)
        >>> hours = np.arange(2000.0)[:, None]
        >>> Y = np.sin(2 * np.pi * hours / 24)
        >>> model = idm.models.StructuredSGPR((hours, Y), daily, features, noise_variance=0.01)
        >>> bool(abs(model.predict_f(np.array([[24.0 * 365 + 6]]))[0][0, 0] - 1) < 0.01)
        True

        :param base_kernel: The base kernel, with lengthscales in units of the column.
        :param period: The length of the cycle: a number, or one for each column, ``[D]``.
        :param start: The place at which the sines of the features are zero: a number, or ``[D]``.
        :raises ValueError: If a period is not positive; also as for the constructor.
        """
        form = "a number or a vector [D]"
        periods = np.atleast_1d(finite_array("period", period, (0, 1), form))
        first = finite_array("start", start, (0, 1), form)
        if not np.all(periods > 0):
            raise refusal("period", "be positive", short(period), "pass the length of the cycle")
        if first.ndim and first.shape != periods.shape:
            remedy = "pass a number, or one for each column"
            raise refusal("start", f"have {len(periods)} numbers", first.shape[0], remedy)
        lower = np.broadcast_to(first, periods.shape)
        kernel = cls(base_kernel, lower, lower + periods, active_dims=active_dims)
        kernel.periods, kernel.is_cycle = periods, True
        return kernel

    def largest_frequencies(self, num_features: int) -> IntArray:
        """The integer frequencies that carry most of the prior variance, ``[J, D]``.

        The choice depends on the current parameters of the kernel.

        :param num_features: The largest number of features of all frequencies together.
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
        """The prior variance ``k_P(0)``, which is constant."""
        return self._lag_covariances(tf.zeros([1, self.num_columns], gpflow.default_float()))[0]

    @check_shapes("frequencies: [J, D]", "return: []")
    def explained_variance(self, frequencies: Any) -> tf.Tensor:
        """The sum of the prior variances of the waves of some integer frequencies."""
        frequencies = np.asarray(frequencies)
        density = self.spectral_density(frequencies)
        counts = tf.constant(num_functions(frequencies), density.dtype)
        return tf.reduce_sum(counts * density) / np.prod(self.periods)

    @check_shapes("X: [batch..., N, D]", "functions: [M, D]", "return: [M, batch..., N]")
    def waves(self, X: TensorType, functions: IntArray) -> tf.Tensor:
        """The orthonormal waves ``BoxFourierFeatures.functions`` at inputs, in active columns."""
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
        """The sums of ``k(lag + n * period)`` over all integer vectors n, ``[N]``, for lags
        ``[N, D]``."""
        base, periods = self.base_kernel, tf.constant(self.periods, lags.dtype)
        squares = tf.square(base.lengthscales / periods)
        return base.variance * theta_mixture(lags / periods, squares, matern_order(base))

    def seen(self, X: TensorType) -> tf.Tensor:
        """The active columns of X; for a cycle, moved by whole periods into the first from zero."""
        remedy = "select them with the kernel's active_dims"
        rows = checked_columns(super().seen(X), self.num_columns, ", those of the box", remedy)
        if not self.is_cycle:
            return rows
        # The remainder is exact in float64, and so are short lags between rows far from the start.
        places = tf.math.floormod(tf.cast(rows, tf.float64), tf.constant(self.periods))
        return tf.cast(places, rows.dtype)
