"""Covariances of Fourier features of a box: Poisson's summation formula."""

from __future__ import annotations

from functools import partial

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf

from .._arguments import warn
from ..inducing_variables import PeriodicFourierFeatures
from ..kernels import Periodized
from ..kernels._columns import num_columns
from ..kernels._diagonals import DiagonalTerm
from ..kernels.finite_rank import explained_terms
from ..kernels.periodic._waves import frequencies_of
from ..linalg import diagonal_operator
from ..linalg.diagonal import Diagonal
from .columns import num_input_columns
from .dispatch import Kuf_shapes, Kuu_operator
from .domains import Domain, domain


@num_input_columns.register(PeriodicFourierFeatures, Periodized)
def num_input_columns_periodic_fourier_features(
    inducing_variable: PeriodicFourierFeatures, kernel: Periodized
) -> int | None:
    """Those of the box."""
    return num_columns(kernel, kernel.num_columns)


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
