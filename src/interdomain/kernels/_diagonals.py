"""The diagonal of a kernel as sums of products: what the parameters scale, and what rows bring."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch

import gpflow
import tensorflow as tf
from gpflow.kernels import Kernel, Product, Static, Stationary, Sum

DiagonalTerm = tuple[Callable[[tf.Tensor], tf.Tensor], Callable[[], tf.Tensor]]
"""What each row of ``[N, D]`` brings, ``[N]``, and the factor, a scalar, that all rows share."""


@singledispatch
def diagonal_terms(kernel: Kernel) -> list[DiagonalTerm]:
    """Terms with ``K(x_n, x_n) = sum over terms of factor * row(x_n)``.

    Sums over rows of what rows bring then serve for all values of the factors. A kernel without a
    known form has one term, its diagonal, with the factor one. A family whose diagonal is a product
    registers it.
    """
    return whole_diagonal(kernel)


def whole_diagonal(kernel: Kernel) -> list[DiagonalTerm]:
    """The diagonal as one term, with the factor one."""
    return [(lambda X: kernel(X, full_cov=False), lambda: tf.ones([], gpflow.default_float()))]


@diagonal_terms.register(Stationary)
@diagonal_terms.register(Static)
def diagonal_terms_constant(kernel: Stationary | Static) -> list[DiagonalTerm]:
    """The variance; unless a subclass computes something else."""
    if type(kernel).K_diag not in (Stationary.K_diag, Static.K_diag):
        return whole_diagonal(kernel)
    return [constant_term(lambda: tf.convert_to_tensor(kernel.variance))]


@diagonal_terms.register(Sum)
def diagonal_terms_sum(kernel: Sum) -> list[DiagonalTerm]:
    """Those of the summands; unless a subclass computes something else."""
    if type(kernel) is not Sum:
        return whole_diagonal(kernel)
    return [term for part in kernel.kernels for term in diagonal_terms(part)]


@diagonal_terms.register(Product)
def diagonal_terms_product(kernel: Product) -> list[DiagonalTerm]:
    """Products of one term of each factor; unless a subclass computes something else."""
    if type(kernel) is not Product:
        return whole_diagonal(kernel)
    return product_terms([diagonal_terms(part) for part in kernel.kernels])


def product_terms(terms: Iterable[Sequence[DiagonalTerm]]) -> list[DiagonalTerm]:
    """The terms of a product, from those of each factor."""
    return [_product_term(chosen) for chosen in itertools.product(*terms)]


def _product_term(terms: Sequence[DiagonalTerm]) -> DiagonalTerm:
    return (
        lambda X: math.prod(row(X) for row, _ in terms),
        lambda: math.prod(factor() for _, factor in terms),
    )


def constant_term(variance: Callable[[], tf.Tensor]) -> DiagonalTerm:
    """The term of a diagonal that is the same everywhere."""
    return (lambda X: tf.ones_like(X[:, 0])), variance
