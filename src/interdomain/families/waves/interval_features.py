"""Fourier features of a Matern process on an interval: Hensman et al. 2018, sections 3 and 4.

Sines and cosines of whole periods are orthogonal under the integral of the inner product of the
RKHS (:mod:`interdomain.core.matern`): it gives Kuu's diagonal, the second term its low rank.
Polynomials, which need not be the same at both ends, are a border of a few rows.
"""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Stationary

from ..._arguments import Array, check_num_inducing, finite_array, integer, number, refusal
from ...core import matern
from ...core.columns import num_columns, select_columns, with_columns
from ...core.family import Domain, InterDomainInducingVariables
from ...core.matern import MATERNS, matern_order, noise_density, rate_of
from ...linalg import LowRankUpdate, StructuredOperator
from ...linalg.bordered import Bordered
from ...linalg.box_ends import with_ends
from . import polynomials
from .polynomials import MOST_DEGREES

_CONTINUED: Array = np.array([[1, 1, 0.5], [0, 1, 1], [0, 0, 0.5]])
"""From value and derivatives at zero, the coefficients of the polynomial times ``exp(-r)``."""


class VariationalFourierFeatures(InterDomainInducingVariables):
    """Projections of a Matern process on sines, cosines and polynomials over an interval.

    ``u = <f, phi>`` in the RKHS of a Matern-1/2, 3/2 or 5/2 kernel on [lower, upper], for
    ``phi = 1, cos(w_m (x - lower)), sin(w_m (x - lower))``, ``w_m = 2 pi m / (upper - lower)``,
    m = 1, ..., num_frequencies, in this order (Hensman, Durrande and Solin, *Variational Fourier
    features for Gaussian processes*, 2018, sections 3 and 4). All of these are the same at both
    ends. Legendre polynomials on the interval, which follow, are not: with them f need not be
    periodic. ``Kuf`` is phi; inside the interval it depends on no parameter of the kernel. ``Kuu``
    is a diagonal plus a matrix of rank 1, 2 or 3, with a row for each polynomial.
    :func:`interdomain.covariances.Kuu_operator` keeps this structure: in ``gpflow.models.SVGP`` and
    :class:`interdomain.models.StructuredSGPR` the factorisation of Kuu does not grow with M.
    ``gpflow.models.SGPR`` factorises Kuu as a dense matrix.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(0, 10, 500)[:, None]
    >>> features = idm.inducing_variables.VariationalFourierFeatures(0, 10, num_frequencies=30)
    >>> features.num_inducing
    64
    >>> kernel = gpflow.kernels.Matern32()
    >>> type(idm.covariances.Kuu_operator(features, kernel)).__name__
    'Bordered'
    >>> model = idm.models.StructuredSGPR((X, np.sin(X)), kernel, features, noise_variance=0.1)
    >>> model.feature_parameters  # none: one pass over the data serves the whole training
    {}
    >>> fitted = idm.fit(model, steps=5, progress=False)
    >>> fitted.frozen, fitted.subset
    ((), None)

    These features are for kernels of one column. For several columns, use a sum of kernels on one
    column each (``active_dims``), with one of these for each in a
    :class:`interdomain.inducing_variables.SumInducingVariables`. The interval may be the range of
    the data. Predictions may be anywhere: outside the interval, the model knows f only through its
    value and derivatives at the end, and the features decay over a lengthscale. For rows of the
    data outside the interval, an SVGP warns; ``StructuredSGPR`` refuses them, as its one pass could
    not serve all lengthscales.

    :param lower: The lower end of the interval; ``upper`` is the upper one.
    :param num_frequencies: The number of sines, which is also the number of cosines.
    :param polynomial_degree: The degree of the last polynomial, up to 3. A Matern process of order
        p + 1/2 is helped by the first p + 1; they are in its RKHS, whatever the degree. Without
        any, 0, the features are those of the paper: then choose an interval longer than the data by
        about two lengthscales on either side, where f can become periodic.
    :ivar angular_frequencies: The w_m, ``[num_frequencies]``, in radians per unit of x.
    :raises ValueError: If the interval is empty or not finite, or a number is not in its range.
    """

    kernels = MATERNS

    def __init__(
        self,
        lower: float,
        upper: float,
        num_frequencies: int,
        *,
        polynomial_degree: int = MOST_DEGREES,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        self.lower, self.upper = number("lower", lower), number("upper", upper)
        self.length = self.upper - self.lower
        if not self.lower < self.upper:
            remedy = "pass the ends in order"
            raise refusal("upper", f"be above lower = {self.lower}", self.upper, remedy)
        self.num_frequencies = integer("num_frequencies", num_frequencies, at_least=0)
        self.polynomial_degree = integer("polynomial_degree", polynomial_degree, at_least=0)
        if self.polynomial_degree > MOST_DEGREES:
            remedy = "take more frequencies instead, as no end needs more polynomials"
            rule = f"be at most {MOST_DEGREES}"
            raise refusal("polynomial_degree", rule, polynomial_degree, remedy)
        check_num_inducing("num_frequencies", self.num_inducing, "features")
        turns = np.arange(1, self.num_frequencies + 1)
        self.angular_frequencies: Array = 2 * np.pi * turns / self.length
        self.angular_frequencies.setflags(write=False)

    @classmethod
    def from_data(
        cls,
        X: TensorType,
        num_frequencies: int,
        *,
        margin: float = 0.0,
        polynomial_degree: int = MOST_DEGREES,
    ) -> VariationalFourierFeatures:
        """Make features on an interval around the data.

        :param X: One column, ``[N, 1]`` or ``[N]``.
        :param margin: How far the interval extends beyond the data on either side, as a multiple of
            the range of the data. It is for features without polynomials: at the ends of the data
            these leave about 15% of the variance of a Matern-3/2 process unexplained if the margin
            is one lengthscale, 1.5% for two, 0.4% for two and a half, and a narrow margin makes
            training choose shorter lengthscales.
        :raises ValueError: If an argument is not as above, or X is not finite or does not vary.
        """
        values = finite_array("X", X, (1, 2), "one column [N, 1]")
        if values.ndim == 2 and values.shape[1] != 1 or not values.size:
            remedy = "pass one with a row or more"
            raise refusal("X", "be one column [N, 1]", f"shape {values.shape}", remedy)
        reach = number("margin", margin, at_least=0) * float(np.ptp(values))
        ends = float(np.min(values)) - reach, float(np.max(values)) + reach
        return cls(*ends, num_frequencies, polynomial_degree=polynomial_degree)

    @property
    def num_inducing(self) -> int:
        """The number ``M = 2 num_frequencies + 1 + polynomial_degree`` of features."""
        return 2 * self.num_frequencies + 1 + self.polynomial_degree

    def is_subset_of(self, others: VariationalFourierFeatures) -> bool:
        """Whether these are waves and polynomials of the same interval, and no others."""
        same = (self.lower, self.upper) == (others.lower, others.upper)
        fewer = self.polynomial_degree <= others.polynomial_degree
        return same and fewer and self.num_frequencies <= others.num_frequencies

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
        inside = self._inside(x)
        outside = tf.zeros_like(inside)
        order, rate = matern_order(kernel), rate_of(kernel)
        for distance, sign in ((below, -1.0), (above, 1.0)):
            # Derivatives along r, and from them the coefficients of the polynomial.
            along = self.derivatives_at(sign, order, rate) * sign ** np.arange(order + 1)
            coefficients = tf.matmul(
                along, _CONTINUED[: order + 1, : order + 1].astype(x.dtype.name)
            )
            r = rate * tf.maximum(distance, 0)
            powers = tf.stack([tf.ones_like(r), r, r * r][: order + 1])  # r**0: no gradient at zero
            polynomial = tf.tensordot(coefficients, powers, axes=1)
            outside = tf.where(distance > 0, tf.exp(-r) * polynomial, outside)
        return tf.where((below > 0) | (above > 0), outside, inside)

    def Kuf_in_domain(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The features, which know no parameter of the kernel."""
        return self._inside(self._column(kernel, X))

    def Kuu(self, kernel: Stationary, *, jitter: float = 0.0) -> StructuredOperator:
        """Diagonal plus low rank, with a border for polynomials; ``jitter`` is not added, as
        nothing of M rows is factorised."""
        self.validate_kernel(kernel)
        order, rate = matern_order(kernel), rate_of(kernel)
        dtype = rate.dtype
        w = tf.constant(self.angular_frequencies, dtype) / rate
        constant = self.length * rate / (kernel.variance * noise_density(order))
        waves = constant / 2 * (1 + w**2) ** (order + 1)
        diagonal = tf.concat([constant[None], waves, waves], axis=0)
        derivatives = self.derivatives_at(-1.0, order, rate)
        update = tf.linalg.matmul(derivatives, tf.constant(matern.INVERSE_ROOTS[order], dtype))
        update /= tf.sqrt(kernel.variance)
        count, degree = len(self.angular_frequencies), self.polynomial_degree
        wave_update, polynomial_update = tf.split(update, [2 * count + 1, degree])
        base = LowRankUpdate(diagonal, wave_update)
        if not degree:
            return base
        # L of a polynomial: its derivatives, of t, times these.
        powers = [self._turn(rate) ** n for n in range(order + 2)]
        filters = tf.stack([math.comb(order + 1, n) * power for n, power in enumerate(powers)])
        products = tf.constant(polynomials.products(degree, order + 2), dtype)
        corner = tf.einsum("i,j,ijkl->kl", filters, filters, products) * constant / 2
        corner += tf.matmul(polynomial_update, polynomial_update, transpose_b=True)
        # That of exp(i w x) is (1 + i w)^(p + 1) times the wave.
        transforms = polynomials.transforms(degree, order + 2, count)
        parts = (tf.constant(part, dtype) for part in (transforms.real, transforms.imag))
        real, imaginary = (tf.einsum("i,ikm->mk", filters, p) * constant / 2 for p in parts)
        frequencies = tf.concat([tf.zeros([1], dtype), w], axis=0)[:, None]
        for _ in range(order + 1):
            real, imaginary = real - frequencies * imaginary, imaginary + frequencies * real
        border = tf.concat([real, imaginary[1:]], axis=0)
        border += tf.matmul(wave_update, polynomial_update, transpose_b=True)
        return Bordered(base, border, corner)

    def _turn(self, rate: tf.Tensor) -> tf.Tensor:
        """By how much t, from -1 to 1 over the interval, grows with ``l x``."""
        return 2 / (self.length * rate)

    def derivatives_at(self, end: float, order: int, rate: tf.Tensor) -> tf.Tensor:
        """Value and derivatives of the features at an end of the interval, ``[M, order + 1]``.

        With respect to ``l x``, as all lengths here are in units of 1/l: powers of numbers near one
        stay in the range of float32.

        :param end: -1 for the lower one, 1 for the upper one.
        """
        w = tf.constant(self.angular_frequencies, rate.dtype) / rate
        zero, one = tf.zeros_like(w), tf.ones([1], rate.dtype)
        waves = [(one, tf.ones_like(w), zero), (0 * one, zero, w), (0 * one, -(w**2), zero)]
        slopes = polynomials.derivatives(self.polynomial_degree, order + 1, np.array([end]))[..., 0]
        columns = [[*waves[n], slopes[n] * self._turn(rate) ** n] for n in range(order + 1)]
        return tf.stack([tf.concat(column, axis=0) for column in columns], axis=1)

    def _column(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The column that the kernel sees, ``[batch..., N]``, with rounding at the ends undone."""
        self.validate_kernel(kernel)
        X = with_columns(select_columns(kernel, X), 1)
        if X.shape[-1] != 1:
            raise ValueError(
                f"X must have one column, found {X.shape[-1]}; select it with the kernel's "
                "active_dims, or pass a sum of kernels on one column each."
            )
        return with_ends(tf.squeeze(X, axis=-1), self.lower, self.upper)

    def _inside(self, x: tf.Tensor) -> tf.Tensor:
        """One, cosines, sines and polynomials, ``[M, batch..., N]``."""
        w = tf.constant(self.angular_frequencies, x.dtype)
        angle = tf.tensordot(w, x - self.lower, axes=0)
        parts = [tf.ones_like(x)[None], tf.cos(angle), tf.sin(angle)]
        if self.polynomial_degree:
            t = (x - self.lower) * (2 / self.length) - 1
            parts.append(polynomials.polynomials(self.polynomial_degree, t))
        return tf.concat(parts, axis=0)

    def validate_kernel(self, kernel: Stationary) -> None:
        """:raises ValueError: If the kernel has several lengthscales."""
        remedy = "pass a sum of kernels on one column each, with SumInducingVariables, as these "
        matern.validate_one_lengthscale(kernel, remedy + "features are for one column")
