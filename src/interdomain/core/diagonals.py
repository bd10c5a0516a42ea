"""The diagonal of a kernel as a sum of products: a function of parameters times one of the row."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.kernels import Kernel, Product, Static, Stationary, Sum

from .columns import WholeRows, kernel_method

DiagonalTerm = tuple[Callable[[tf.Tensor], tf.Tensor], Callable[[], tf.Tensor]]
"""A function from rows ``[N, D]`` to values ``[N]``, and a function that returns their factor."""


class UniformVariance(WholeRows, metaclass=abc.ABCMeta):
    """A kernel whose prior variance is the same everywhere."""

    @abc.abstractmethod
    def total_variance(self) -> tf.Tensor:
        """The prior variance of f, a scalar."""

    @kernel_method
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.fill(tf.shape(self.seen(X))[:-1], self.total_variance())

    def diagonal_terms(self) -> list[DiagonalTerm]:
        """One constant term, whose factor is the variance."""
        return [constant_term(self.total_variance)]


def diagonal_terms(kernel: Kernel) -> list[DiagonalTerm]:
    """Terms with ``K(x_n, x_n) = sum over terms of factor * row(x_n)``.

    Sums of the rows' values over the data are then valid for all values of the factors. A kernel
    whose diagonal is a product has a method ``diagonal_terms`` in the class of its ``K_diag``; the
    method may return None. Any other kernel, and a subclass that overrides ``K_diag`` alone, has
    one term: its diagonal, with the factor one.
    """
    kind = type(kernel)
    if kind.K_diag in (Stationary.K_diag, Static.K_diag):
        return [constant_term(lambda: tf.convert_to_tensor(kernel.variance))]
    if kind is Sum:
        return [term for part in kernel.kernels for term in diagonal_terms(part)]
    if kind is Product:
        return product_terms([diagonal_terms(part) for part in kernel.kernels])
    computes_it = next(base for base in kind.__mro__ if "K_diag" in vars(base))
    terms = kernel.diagonal_terms() if "diagonal_terms" in vars(computes_it) else None
    if terms is None:
        return [(lambda X: kernel(X, full_cov=False), lambda: tf.ones([], gpflow.default_float()))]
    return list(terms)


def product_terms(terms: Iterable[Sequence[DiagonalTerm]]) -> list[DiagonalTerm]:
    """The terms of a product, computed from the terms of each factor."""

    def product(chosen: Sequence[DiagonalTerm]) -> DiagonalTerm:
        rows, factors = zip(*chosen, strict=True)
        return (
            lambda X: math.prod(row(X) for row in rows),
            lambda: math.prod(factor() for factor in factors),
        )

    return list(map(product, itertools.product(*terms)))


def constant_term(variance: Callable[[], tf.Tensor]) -> DiagonalTerm:
    """The term of a constant diagonal."""
    return (lambda X: tf.ones_like(X[..., 0])), variance


def explained_variances(features: Any, kernel: Kernel, X: TensorType) -> tf.Tensor:
    """The prior variance at rows that a family's features explain, from its terms if it has terms,
    ``[batch..., N]``.

    :param features: The :class:`interdomain.core.family.InterDomainInducingVariables`.
    """
    terms = features.explained_terms(kernel)
    if terms is None:
        variances: tf.Tensor = features.explained_diagonal(kernel, X)
        return variances
    return tf.add_n([factor() * row(tf.convert_to_tensor(X)) for row, factor in terms])
