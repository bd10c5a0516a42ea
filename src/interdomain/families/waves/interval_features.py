"""Fourier features of a Matern process on an interval: Hensman et al. 2018, sections 3 and 4.

The inner product of the RKHS has two terms (:mod:`interdomain.core.matern`). Sines and cosines of
whole periods are orthogonal under the integral, so the integral gives the diagonal of Kuu. The
second term gives a matrix of low rank. Polynomials add a border of a few rows."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Stationary

from ..._arguments import Array, check_num_inducing, finite_array, integer, number, refusal
from ...core import matern
from ...core.acting import as_seen
from ...core.averages import Average, Mean
from ...core.columns import num_columns, select_columns, with_columns
from ...core.family import Domain, InterDomainInducingVariables
from ...core.functionals import Derivative, LinearFunctional, Places
from ...core.matern import MATERNS, matern_order, noise_density, rate_of
from ...linalg import LowRankUpdate, StructuredOperator
from ...linalg.bordered import Bordered
from ...linalg.box_ends import with_ends
from . import polynomials
from .inside import Inside
from .polynomials import MOST_DEGREES

_CONTINUED: Array = np.array([[1, 1, 0.5], [0, 1, 1], [0, 0, 0.5]])
"""A matrix from value and derivatives at zero to coefficients of a polynomial times ``exp(-r)``."""


class VariationalFourierFeatures(InterDomainInducingVariables):
    """Projections of a Matern process on sines, cosines and polynomials over an interval.

    ``u = <f, phi>`` in the RKHS of a Matern-1/2, 3/2 or 5/2 kernel on [lower, upper]. The phi are
    ``1, cos(w_m (x - lower)), sin(w_m (x - lower))``, in this order, with ``w_m = 2 pi m / (upper -
    lower)`` and m = 1, ..., num_frequencies. See Hensman, Durrande and Solin, *Variational Fourier
    features for Gaussian processes*, 2018, sections 3 and 4. Each phi has equal values at both
    ends. Legendre polynomials on the interval follow, so that f need not be periodic. Inside the
    interval, ``Kuf`` is phi and depends on no parameter of the kernel. ``Kuu`` is a diagonal plus a
    matrix of rank 1, 2 or 3, bordered by a row and a column for each polynomial.
    :func:`interdomain.covariances.Kuu_operator` keeps this structure: in ``gpflow.models.SVGP`` and
    :class:`interdomain.models.StructuredSGPR`, the matrices to factorise do not grow with M.
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
    >>> model.feature_parameters  # none: one pass over the data is enough for training
    {}
    >>> fitted = idm.fit(model, steps=5, progress=False)
    >>> fitted.frozen, fitted.subset
    ((), None)

    These features are for kernels of one column. For several columns, use a sum of kernels on one
    column each (``active_dims``), with features for each kernel in a
    :class:`interdomain.inducing_variables.SumInducingVariables`. The interval may be the range of
    the data. Outside the interval, predictions depend on f only through its value and derivatives
    at the end, and the features decay over a lengthscale. For training data outside the interval,
    an SVGP warns, and ``StructuredSGPR`` raises an error: one pass over these data could not serve
    all lengthscales.

    :param lower: The lower end of the interval.
    :param upper: The upper end of the interval.
    :param num_frequencies: The number of sines, which is also the number of cosines.
    :param polynomial_degree: The degree of the last polynomial, 3 by default and at most. For a
        Matern process of order p + 1/2, the first p + 1 polynomials help; any degree is in the
        RKHS. Degree 0 gives the features of the paper. The interval should then exceed the data by
        about two lengthscales on either side, so that f can become periodic.
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
            remedy = "pass more frequencies instead; no kernel needs a higher degree"
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
        :param margin: The margin of the interval on either side of the data, as a multiple of the
            range of the data, for features without polynomials. At the ends of the data, a margin
            of one lengthscale leaves about 15% of the variance of a Matern-3/2 process unexplained;
            two leave 1.5%; two and a half, 0.4%. With a narrow margin, training chooses shorter
            lengthscales.
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
        """Whether all waves and polynomials are among ``others``, and the intervals are equal."""
        same = (self.lower, self.upper) == (others.lower, others.upper)
        fewer = self.polynomial_degree <= others.polynomial_degree
        return same and fewer and self.num_frequencies <= others.num_frequencies

    def num_columns(self, kernel: Stationary) -> int | None:
        """The number of columns of X: one; None if the kernel selects its column of X."""
        return num_columns(kernel, 1)

    def domain(self, kernel: Stationary) -> Domain:
        """The interval of the features."""
        remedy = "build the features with a wider one, by VariationalFourierFeatures.from_data"
        return Domain(np.array([self.lower]), np.array([self.upper]), remedy=remedy)

    def Kuf(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The covariances of the inducing variables and f(x): the features inside the interval.

        Outside, a feature is a polynomial of degree p times ``exp(-l r)``: r is the distance from
        the end, and l is ``sqrt(2 p + 1)`` divided by the lengthscale. The value and p derivatives
        are continuous, because f is Markov in them (section 3.4 for p = 0).
        """
        x = self._column(kernel, X)
        below, above = self.lower - x, x - self.upper
        inside = self._inside.at(x)
        outside = tf.zeros_like(inside)
        order, rate = matern_order(kernel), rate_of(kernel)
        for distance, sign in ((below, -1.0), (above, 1.0)):
            # The derivatives along r determine the coefficients of the polynomial.
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
        """The features at rows in the interval; they depend on no parameter of the kernel."""
        return self._inside.at(self._column(kernel, X))

    def acted_Kuf(
        self, kernel: Stationary, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """Slopes, means and blurs of the features: in closed form if they need f only inside the
        interval, by differentiation or quadrature at other places."""
        if not isinstance(functional, (Derivative, Average)):
            return None
        is_inside = self._inside.contains(*self._seen(kernel, functional, places))
        rows = (tf.where(some)[:, 0] for some in (is_inside, ~is_inside))
        inside, outside = (tf.cast(some, tf.int32) for some in rows)

        def features(X: tf.Tensor) -> tf.Tensor:
            return tf.linalg.matrix_transpose(self.Kuf(kernel, X))

        closed = self._inside.acted(*self._seen(kernel, functional, places.at(inside)))
        others = functional.act(features, places.at(outside), self.num_inducing)
        by_rows = [tf.linalg.matrix_transpose(closed), others]
        return tf.linalg.matrix_transpose(tf.dynamic_stitch([inside, outside], by_rows))

    def acted_Kuf_in_domain(
        self, kernel: Stationary, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        """The closed form, which depends on no parameter of the kernel. (The tails of a blur are
        not in the domain.)"""
        if isinstance(functional, (Derivative, Mean)):
            return self._inside.acted(*self._seen(kernel, functional, places))
        return self.acted_Kuf(kernel, functional, places)

    def _seen(
        self, kernel: Stationary, functional: LinearFunctional, places: Places
    ) -> tuple[LinearFunctional | None, Places]:
        """The functional and the places in the kernel's column."""
        seen, selected = as_seen(functional, kernel, places)
        inputs = self._column(kernel, places.inputs)[:, None]
        return seen, selected._replace(inputs=inputs)

    def Kuu(self, kernel: Stationary, *, jitter: float = 0.0) -> StructuredOperator:
        """A diagonal plus low rank, with a border for polynomials. ``jitter`` is not added, because
        no M x M matrix is factorised."""
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
        # L of a polynomial is the sum of its derivatives in t, times these filters.
        powers = [self._turn(rate) ** n for n in range(order + 2)]
        filters = tf.stack([math.comb(order + 1, n) * power for n, power in enumerate(powers)])
        products = tf.constant(polynomials.products(degree, order + 2), dtype)
        corner = tf.einsum("i,j,ijkl->kl", filters, filters, products) * constant / 2
        corner += tf.matmul(polynomial_update, polynomial_update, transpose_b=True)
        # L of exp(i w x) is (1 + i w)^(p + 1) exp(i w x).
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
        """The derivative with respect to ``l x`` of t, which is -1 and 1 at the interval's ends."""
        return 2 / (self.length * rate)

    def derivatives_at(self, end: float, order: int, rate: tf.Tensor) -> tf.Tensor:
        """The values and derivatives of the features at an end, ``[M, order + 1]``.

        Derivatives are with respect to ``l x``, as all lengths here are in units of 1/l: powers of
        numbers near one stay in the range of float32.

        :param end: -1 for the lower end, 1 for the upper end.
        """
        w = tf.constant(self.angular_frequencies, rate.dtype) / rate
        zero, one = tf.zeros_like(w), tf.ones([1], rate.dtype)
        waves = [(one, tf.ones_like(w), zero), (0 * one, zero, w), (0 * one, -(w**2), zero)]
        slopes = polynomials.derivatives(self.polynomial_degree, order + 1, np.array([end]))[..., 0]
        columns = [[*waves[n], slopes[n] * self._turn(rate) ** n] for n in range(order + 1)]
        return tf.stack([tf.concat(column, axis=0) for column in columns], axis=1)

    def _column(self, kernel: Stationary, X: TensorType) -> tf.Tensor:
        """The kernel's column of X, ``[batch..., N]``, with rounding at the ends removed."""
        self.validate_kernel(kernel)
        X = with_columns(select_columns(kernel, X), 1)
        if X.shape[-1] != 1:
            raise ValueError(
                f"X must have one column, found {X.shape[-1]}; select it with the kernel's "
                "active_dims, or pass a sum of kernels on one column each."
            )
        return with_ends(tf.squeeze(X, axis=-1), self.lower, self.upper)

    @cached_property
    def _inside(self) -> Inside:
        degree = self.polynomial_degree
        return Inside(self.lower, self.length, self.angular_frequencies, degree)

    def validate_kernel(self, kernel: Stationary) -> None:
        """Check that the kernel has one lengthscale; a ValueError otherwise."""
        remedy = "pass a sum of kernels on one column each, with SumInducingVariables, as these "
        matern.validate_one_lengthscale(kernel, remedy + "features are for one column")
