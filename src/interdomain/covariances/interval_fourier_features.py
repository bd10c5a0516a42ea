"""Covariances of Fourier features on an interval (Hensman et al. 2018, sections 3 and 4), and of a
box, below.

A Matern process of order p + 1/2 solves ``(d/dx + l)^(p+1) f = white noise`` of density q, so that
the inner product of its RKHS on [a, b] is

    <g, h> = 1/q int (Lg)(Lh) dx + v(g)^T P^-1 v(h),    L = (d/dx + l)^(p+1),

v being value and first p derivatives at a, and P their covariance for f. Sines and cosines of whole
periods are orthogonal under the integral: it gives Kuu's diagonal, the second term its low rank.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.kernels import Matern12, Matern32, Matern52, Stationary

from .._arguments import Array, warn
from ..inducing_variables import IntervalFourierFeatures, PeriodicFourierFeatures
from ..kernels import Periodized
from ..kernels._columns import num_columns, select_columns, with_columns
from ..kernels._diagonals import DiagonalTerm
from ..kernels.finite_rank import explained_terms
from ..kernels.periodic._waves import frequencies_of
from ..linalg import diagonal_operator, low_rank_operator
from ..linalg.diagonal import Diagonal
from .columns import num_input_columns
from .dispatch import Kuf_shapes, Kuu_operator
from .domains import Domain, Kuf_in_domain, domain

_MATERNS = (Matern12, Matern32, Matern52)


def matern_order(kernel: Stationary) -> int:
    """The order p, of a Matern kernel of p + 1/2."""
    return next(p for p, kind in enumerate(_MATERNS) if isinstance(kernel, kind))


def rate_of(kernel: Stationary) -> tf.Tensor:
    """The l of ``(d/dx + l)``."""
    return math.sqrt(2 * matern_order(kernel) + 1) / kernel.lengthscales


def noise_density(order: int) -> float:
    """That of the white noise that gives f a variance of one, for a rate of one."""
    return 2.0 ** (2 * order + 1) * math.factorial(order) ** 2 / math.factorial(2 * order)


def derivatives_at_ends(
    inducing_variable: IntervalFourierFeatures, order: int, rate: tf.Tensor
) -> tf.Tensor:
    """Value and derivatives of the features at an end of the interval, ``[M, order + 1]``: the same
    at both, as they are periodic.

    With respect to ``l x``, as all lengths here are in units of 1/l: powers of numbers near one
    stay in the range of float32.
    """
    w = tf.constant(inducing_variable.angular_frequencies, rate.dtype) / rate
    zero = tf.zeros_like(w)
    columns = [(1.0, tf.ones_like(w), zero), (0.0, zero, w), (0.0, -(w**2), zero)]
    return tf.stack(
        [
            tf.concat([tf.constant([constant], rate.dtype), cosines, sines], axis=0)
            for constant, cosines, sines in columns[: order + 1]
        ],
        axis=1,
    )


@num_input_columns.register(IntervalFourierFeatures, _MATERNS)
def num_input_columns_interval_fourier_features(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary
) -> int | None:
    """They are for one column."""
    return num_columns(kernel, 1)


@domain.register(IntervalFourierFeatures, _MATERNS)
def domain_interval_fourier_features(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary
) -> Domain:
    """The interval."""
    return Domain(
        np.array([inducing_variable.lower]),
        np.array([inducing_variable.upper]),
        remedy="build the features with a wider one, for example "
        "IntervalFourierFeatures.from_data(X, ...)",
    )


def _column(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary, Xnew: TensorType
) -> tf.Tensor:
    """The column that the kernel sees, ``[batch..., N]``."""
    inducing_variable.validate_kernel(kernel)
    Xnew = with_columns(select_columns(kernel, Xnew), 1)
    if Xnew.shape[-1] != 1:
        raise ValueError(
            f"X must have one column, found {Xnew.shape[-1]}; select it with the kernel's "
            "active_dims, or pass a sum of kernels on one column each."
        )
    return tf.squeeze(Xnew, axis=-1)


def _waves(inducing_variable: IntervalFourierFeatures, x: tf.Tensor) -> tf.Tensor:
    """One, cosines and sines, ``[M, batch..., N]``."""
    w = tf.constant(inducing_variable.angular_frequencies, x.dtype)
    w = tf.reshape(w, tf.concat([[-1], tf.ones([tf.rank(x)], tf.int32)], axis=0))
    angle = w * (x - inducing_variable.lower)
    return tf.concat([tf.ones_like(x)[None], tf.cos(angle), tf.sin(angle)], axis=0)


@Kuf_in_domain.register(IntervalFourierFeatures, _MATERNS, object)
@Kuf_shapes
def Kuf_in_domain_interval_fourier_features(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary, Xnew: TensorType
) -> tf.Tensor:
    """The features, which know no parameter of the kernel."""
    return _waves(inducing_variable, _column(inducing_variable, kernel, Xnew))


@Kuf.register(IntervalFourierFeatures, _MATERNS, object)
@Kuf_shapes
def Kuf_interval_fourier_features(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary, Xnew: TensorType
) -> tf.Tensor:
    """The features; beyond an end, what f's value and derivatives there say of f.

    A polynomial of degree p times ``exp(-l r)``, r being the distance from the end, that continues
    value and derivatives: the process is Markov in them (the paper's section 3.4 for p = 0).
    """
    x = _column(inducing_variable, kernel, Xnew)
    below = inducing_variable.lower - x
    above = x - inducing_variable.upper
    inside = _waves(inducing_variable, x)
    outside = tf.zeros_like(inside)
    order, rate = matern_order(kernel), rate_of(kernel)
    derivatives = derivatives_at_ends(inducing_variable, order, rate)
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
        polynomial = tf.add_n(
            [tf.tensordot(c, power, axes=0) for c, power in zip(coefficients, powers, strict=False)]
        )
        outside = tf.where(distance > 0, tf.exp(-r) * polynomial, outside)
    return tf.where((below > 0) | (above > 0), outside, inside)


@Kuu_operator.register(IntervalFourierFeatures, _MATERNS)
def Kuu_operator_interval_fourier_features(
    inducing_variable: IntervalFourierFeatures, kernel: Stationary, *, jitter: float = 0.0
) -> tf.linalg.LinearOperatorLowRankUpdate:
    """Diagonal plus low rank; ``jitter`` is not added, because nothing of M rows is factorised."""
    inducing_variable.validate_kernel(kernel)
    order, rate = matern_order(kernel), rate_of(kernel)
    dtype = rate.dtype
    w = tf.constant(inducing_variable.angular_frequencies, dtype) / rate
    constant = inducing_variable.length * rate / (kernel.variance * noise_density(order))
    waves = constant / 2 * (1 + w**2) ** (order + 1)
    diagonal = tf.concat([constant[None], waves, waves], axis=0)
    derivatives = derivatives_at_ends(inducing_variable, order, rate)
    update = tf.linalg.matmul(derivatives, tf.constant(INVERSE_ROOTS[order], dtype))
    return low_rank_operator(diagonal, update / tf.sqrt(kernel.variance))


INVERSE_ROOTS: tuple[Array, ...] = (
    np.eye(1),
    np.eye(2),
    np.array([[1, 0, math.sqrt(1 / 8)], [0, math.sqrt(3), 0], [0, 0, math.sqrt(9 / 8)]]),
)
"""For variance and rate one, a matrix whose product with its transpose is P^-1: for order 2 of the
covariance ``[[1, 0, -1/3], [0, 1/3, 0], [-1/3, 0, 1]]``."""


# Covariances of Fourier features of a box: Poisson's summation formula.


@domain.register(PeriodicFourierFeatures, Periodized)
def domain_periodic_fourier_features(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized
) -> Domain:
    """The box. Beyond it everything repeats, which no data do."""
    return Domain(
        inducing_variable.lower,
        inducing_variable.upper,
        repeats=True,
        remedy="make the kernel with a wider one, for example Periodized.from_data(base_kernel, X)",
    )


@Kuf.register(PeriodicFourierFeatures, Periodized, object)
@Kuf_shapes
def Kuf_periodic_fourier_features(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized, Xnew: TensorType
) -> tf.Tensor:
    """The waves, which no parameter moves."""
    inducing_variable.validate_kernel(kernel)
    Xnew = kernel.seen(Xnew)
    _warn_outside(kernel, Xnew)
    return kernel.waves(Xnew, inducing_variable.functions)


def _warn_outside(kernel: Periodized, X: tf.Tensor) -> None:
    """Where values are known, outside of compiled functions: the prior repeats beyond the box."""
    values = tf.get_static_value(X) if tf.executing_eagerly() else None
    if values is None:
        return
    outside = kernel.outside(values)
    if np.any(outside):
        warn(
            f"Xnew: {np.count_nonzero(outside)} of {outside.size} rows are outside of the box from "
            f"{kernel.lower} to {kernel.upper}, beyond which the prior repeats, and so do "
            "predictions; make the kernel with a wider one."
        )


@check_shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M]",
)
def Kuu_diagonal(inducing_variable: PeriodicFourierFeatures, kernel: Periodized) -> tf.Tensor:
    """``1 / S(w_m)``, S being computed once for the sines and cosines of a frequency.

    A density that underflows beside that of the constant leaves features of no effect, not NaN.
    """
    inducing_variable.validate_kernel(kernel)
    frequencies, places = np.unique(
        frequencies_of(inducing_variable.functions), axis=0, return_inverse=True
    )
    zero = np.zeros([1, kernel.num_columns], np.int64)
    densities = kernel.spectral_density(np.concatenate([zero, frequencies]))
    greatest = tf.stop_gradient(densities[0])
    least = 1e4 * float(np.sqrt(np.finfo(densities.dtype.as_numpy_dtype).tiny))
    shares = tf.maximum(densities[1:] / greatest, least)  # the gradient has their squares
    return tf.gather(1 / shares / greatest, places.reshape(-1))


@Kuu_operator.register(PeriodicFourierFeatures, Periodized)
def Kuu_operator_periodic_fourier_features(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized, *, jitter: float = 0.0
) -> Diagonal:
    """The diagonal; ``jitter`` is not added, because a diagonal needs no factorisation."""
    return diagonal_operator(Kuu_diagonal(inducing_variable, kernel))


@explained_terms.register(PeriodicFourierFeatures, Periodized)
def explained_terms_periodic_fourier_features(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized
) -> list[DiagonalTerm]:
    """The variance of the waves, the same everywhere."""
    inducing_variable.validate_kernel(kernel)
    frequencies = inducing_variable.frequencies
    return [(_one_for_each_row, partial(kernel.explained_variance, frequencies))]


def _one_for_each_row(X: tf.Tensor) -> tf.Tensor:
    return tf.ones_like(X[..., 0])
