"""Fourier features of a Matern process on an interval: Hensman et al. 2018, sections 3 and 4.

Sines and cosines of whole periods are orthogonal under the integral of the inner product of the
RKHS (:mod:`interdomain.core.matern`): it gives Kuu's diagonal, the second term its low rank.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Stationary

from ..._arguments import Array, check_num_inducing, finite_array, integer, number
from ...core.columns import num_columns, select_columns, with_columns
from ...core.family import Domain, InterDomainInducingVariables
from ...core.matern import (
    INVERSE_ROOTS,
    MATERNS,
    matern_order,
    noise_density,
    rate_of,
    validate_one_lengthscale,
)
from ...linalg import LowRankUpdate


class VariationalFourierFeatures(InterDomainInducingVariables):
    """Projections of a Matern process on sines and cosines over an interval.

    ``u = <f, phi>`` in the RKHS of a Matern-1/2, 3/2 or 5/2 kernel on [lower, upper], for
    ``phi = 1, cos(w_m (x - lower)), sin(w_m (x - lower))``, ``w_m = 2 pi m / (upper - lower)``,
    m = 1, ..., num_frequencies, in this order (Hensman, Durrande and Solin, *Variational Fourier
    features for Gaussian processes*, 2018, sections 3 and 4). ``Kuf`` is phi; inside the interval
    it depends on no parameter of the kernel. ``Kuu`` is a diagonal plus a matrix of rank 1, 2 or 3.
    :func:`interdomain.covariances.Kuu_operator` keeps this structure: in ``gpflow.models.SVGP`` and
    :class:`interdomain.models.StructuredSGPR` the factorisation of Kuu does not grow with M.
    ``gpflow.models.SGPR`` factorises Kuu as a dense matrix.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(0, 10, 500)[:, None]
    >>> features = idm.inducing_variables.VariationalFourierFeatures(-2, 12, num_frequencies=30)
    >>> features.num_inducing
    61
    >>> kernel = gpflow.kernels.Matern32()
    >>> type(idm.covariances.Kuu_operator(features, kernel)).__name__
    'LowRankUpdate'
    >>> model = idm.models.StructuredSGPR((X, np.sin(X)), kernel, features, noise_variance=0.1)
    >>> model.feature_parameters  # none: one pass over the data serves the whole training
    {}
    >>> fitted = idm.fit(model, steps=5, progress=False)
    >>> fitted.frozen, fitted.subset
    ((), None)

    These features are for kernels of one column. For several columns, use a sum of kernels on one
    column each (``active_dims``), with one of these for each in a
    :class:`interdomain.inducing_variables.SumInducingVariables`. Choose an interval somewhat longer
    than the data, so that f need not be periodic on it. Predictions may be anywhere: outside the
    interval, the model knows f only through its value and derivatives at the end, and the features
    decay over a lengthscale. For rows of the data outside the interval, an SVGP warns;
    ``StructuredSGPR`` refuses them, as its one pass could not serve all lengthscales.

    :param lower: The lower end of the interval.
    :param upper: The upper end of the interval.
    :param num_frequencies: The number of sines, which is also the number of cosines.
    :ivar length: The length of the interval.
    :ivar angular_frequencies: The angular frequencies w_m, ``[num_frequencies]``, in radians per
        unit of x.
    :raises ValueError: If the interval is empty or not finite, or the number is negative or too
        large.
    """

    kernels = MATERNS

    def __init__(
        self,
        lower: float,
        upper: float,
        num_frequencies: int,
        *,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        ends = number("lower", lower), number("upper", upper)
        if not ends[0] < ends[1]:
            raise ValueError(
                f"upper must be above lower = {ends[0]}, found {ends[1]}; pass the ends in order."
            )
        count = integer("num_frequencies", num_frequencies, at_least=0)
        size = 2 * count + 1
        check_num_inducing("num_frequencies", size, "features")
        self.lower, self.upper = ends
        self.length, self.num_frequencies = ends[1] - ends[0], count
        self.angular_frequencies: Array = 2 * np.pi * np.arange(1, count + 1) / self.length
        self.angular_frequencies.setflags(write=False)

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        num_frequencies: int,
        *,
        margin: float = 0.25,
    ) -> VariationalFourierFeatures:
        """Make features on an interval around the data.

        :param X: One column, ``[N, 1]`` or ``[N]``.
        :param margin: How far the interval extends beyond the data on either side, as a multiple of
            the range of the data. At the ends of the data the features leave about 15% of the
            variance of a Matern-3/2 process unexplained if the margin is one lengthscale, 1.5% for
            two, 0.4% for two and a half. A narrow margin makes training choose shorter
            lengthscales.
        :raises ValueError: If X has several columns, is not finite or does not vary, or the margin
            is negative.
        """
        values = finite_array("X", X, (1, 2), "one column [N, 1]")
        if values.ndim == 2 and values.shape[1] != 1 or not values.size:
            raise ValueError(
                f"X must be one column [N, 1], found shape {values.shape}; pass one with a row or "
                "more."
            )
        lower, upper = float(np.min(values)), float(np.max(values))
        reach = number("margin", margin, at_least=0) * (upper - lower)
        return cls(lower - reach, upper + reach, num_frequencies)

    @property
    def num_inducing(self) -> int:
        """The number ``M = 2 num_frequencies + 1`` of features."""
        return 2 * self.num_frequencies + 1

    def is_subset_of(self, others: VariationalFourierFeatures) -> bool:
        """Whether these are waves of the same interval."""
        same = (self.lower, self.upper) == (others.lower, others.upper)
        return same and self.num_frequencies <= others.num_frequencies

    def num_columns(self, kernel: Stationary) -> int | None:
        """They are for one column."""
        return num_columns(kernel, 1)

    def domain(self, kernel: Stationary) -> Domain:
        """The interval."""
        remedy = "build the features with a wider one, by VariationalFourierFeatures.from_data"
        return Domain(np.array([self.lower]), np.array([self.upper]), remedy=remedy)

    def Kuf(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The features; beyond an end, what f's value and derivatives there say of f.

        A polynomial of degree p times ``exp(-l r)``, r being the distance from the end, that
        continues value and derivatives: the process is Markov in them (section 3.4 for p = 0).
        """
        x = self._column(kernel, X)
        below, above = self.lower - x, x - self.upper
        inside = self._waves(x)
        outside = tf.zeros_like(inside)
        order, rate = matern_order(kernel), rate_of(kernel)
        derivatives = self.derivatives_at_ends(order, rate)
        for distance, sign in ((below, -1.0), (above, 1.0)):
            r = rate * tf.maximum(distance, 0)
            # Derivatives along r, and from them the coefficients of the polynomial.
            along = [sign**n * derivatives[:, n] for n in range(order + 1)]
            coefficients = [along[0]]
            if order > 0:
                coefficients.append(along[1] + along[0])
            if order > 1:
                coefficients.append((along[2] - along[0]) / 2 + coefficients[1])
            powers = [tf.ones_like(r), r, r * r]  # r**0 has no gradient at zero
            terms = zip(coefficients, powers, strict=False)
            polynomial = tf.add_n([tf.tensordot(c, power, axes=0) for c, power in terms])
            outside = tf.where(distance > 0, tf.exp(-r) * polynomial, outside)
        return tf.where((below > 0) | (above > 0), outside, inside)

    def Kuf_in_domain(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The features, which know no parameter of the kernel."""
        return self._waves(self._column(kernel, X))

    def Kuu(self, kernel: Stationary, *, jitter: float = 0.0) -> LowRankUpdate:
        """Diagonal plus low rank; ``jitter`` is not added, as nothing of M rows is factorised."""
        self.validate_kernel(kernel)
        order, rate = matern_order(kernel), rate_of(kernel)
        dtype = rate.dtype
        w = tf.constant(self.angular_frequencies, dtype) / rate
        constant = self.length * rate / (kernel.variance * noise_density(order))
        waves = constant / 2 * (1 + w**2) ** (order + 1)
        diagonal = tf.concat([constant[None], waves, waves], axis=0)
        derivatives = self.derivatives_at_ends(order, rate)
        update = tf.linalg.matmul(derivatives, tf.constant(INVERSE_ROOTS[order], dtype))
        return LowRankUpdate(diagonal, update / tf.sqrt(kernel.variance))

    def derivatives_at_ends(self, order: int, rate: tf.Tensor) -> tf.Tensor:
        """Value and derivatives of the features at an end of the interval, ``[M, order + 1]``: the
        same at both, as they are periodic.

        With respect to ``l x``, as all lengths here are in units of 1/l: powers of numbers near one
        stay in the range of float32.
        """
        w = tf.constant(self.angular_frequencies, rate.dtype) / rate
        zero = tf.zeros_like(w)
        columns = [(1.0, tf.ones_like(w), zero), (0.0, zero, w), (0.0, -(w**2), zero)]
        return tf.stack(
            [
                tf.concat([tf.constant([constant], rate.dtype), cosines, sines], axis=0)
                for constant, cosines, sines in columns[: order + 1]
            ],
            axis=1,
        )

    def _column(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The column that the kernel sees, ``[batch..., N]``."""
        self.validate_kernel(kernel)
        X = with_columns(select_columns(kernel, X), 1)
        if X.shape[-1] != 1:
            raise ValueError(
                f"X must have one column, found {X.shape[-1]}; select it with the kernel's "
                "active_dims, or pass a sum of kernels on one column each."
            )
        return tf.squeeze(X, axis=-1)

    def _waves(self, x: tf.Tensor) -> tf.Tensor:
        """One, cosines and sines, ``[M, batch..., N]``."""
        w = tf.constant(self.angular_frequencies, x.dtype)
        w = tf.reshape(w, tf.concat([[-1], tf.ones([tf.rank(x)], tf.int32)], axis=0))
        angle = w * (x - self.lower)
        return tf.concat([tf.ones_like(x)[None], tf.cos(angle), tf.sin(angle)], axis=0)

    def validate_kernel(self, kernel: Stationary) -> None:
        """:raises ValueError: If the kernel has several lengthscales."""
        remedy = (
            "pass a sum of kernels on one column each, with SumInducingVariables, as these "
            "features are for one column"
        )
        validate_one_lengthscale(kernel, remedy)
