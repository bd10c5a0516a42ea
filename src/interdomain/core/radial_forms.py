"""Which kernels are sums of functions of a squared distance, and which sums they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel

from ..linalg.radial_terms import (
    RadialTerm,
    ValueAndSlope,
    exponential,
    matern12,
    matern32,
    matern52,
)

# The factor of the squared scaled distance, and rho. By exact type: a subclass may compute
# something else.
_CLOSED_FORMS: dict[type[Kernel], tuple[float, ValueAndSlope]] = {
    gpflow.kernels.SquaredExponential: (-0.5, exponential),
    gpflow.kernels.Matern12: (1.0, matern12),
    gpflow.kernels.Matern32: (3.0, matern32),
    gpflow.kernels.Matern52: (5.0, matern52),
}


def radial_terms(kernel: Kernel) -> list[RadialTerm] | None:
    """A kernel as a sum of radial terms, or None if it is not known to be one. A kernel may have a
    method of this name that knows its own."""
    if hasattr(kernel, "radial_terms"):
        terms: list[RadialTerm] | None = kernel.radial_terms()
        return terms
    if type(kernel) is gpflow.kernels.Sum:
        return sum_of_terms([(part, lambda X: X) for part in kernel.kernels], kernel)
    if type(kernel) not in _CLOSED_FORMS:
        return None
    scale, value_and_slope = _CLOSED_FORMS[type(kernel)]

    def inputs(X: tf.Tensor) -> tf.Tensor:
        columns = kernel.slice(X, None)[0]
        return kernel.scale(columns) if kernel.ard else columns

    variance, lengthscales = tf.convert_to_tensor(kernel.variance), kernel.lengthscales
    shared = tf.ones_like(variance) if kernel.ard else tf.convert_to_tensor(lengthscales)
    return [RadialTerm(variance, value_and_slope, inputs, scale / tf.square(shared))]


def sum_of_terms(
    parts: list[tuple[Kernel, Callable[[tf.Tensor], tf.Tensor]]], whole: Kernel
) -> list[RadialTerm] | None:
    """The terms of all parts of a kernel, or None if a part has none.

    :param parts: Each with the function that takes its inputs out of those of the whole.
    :param whole: The kernel, which may itself have ``active_dims``.
    """
    terms = []
    for part, inputs in parts:
        inner = radial_terms(part)
        if inner is None:
            return None
        for term in inner:
            terms.append(replace(term, inputs=_inside(whole, inputs, term)))
    return terms


def _inside(
    whole: Kernel, inputs: Callable[[tf.Tensor], tf.Tensor], term: RadialTerm
) -> Callable[[tf.Tensor], tf.Tensor]:
    return lambda X: term.inputs(inputs(whole.slice(X, None)[0]))
