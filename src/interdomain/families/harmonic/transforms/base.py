"""The base class of cyclic transformations of the input."""

from __future__ import annotations

import abc
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from check_shapes import check_shapes

from ...._arguments import Array, integer, refusal, short

IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]

TensorLike: TypeAlias = Any
"""Anything that converts to a tensor of floating-point numbers."""

TOLERANCE = 1e-9
"""Two points count as equal if they differ by at most this times the largest coordinate."""

NUM_PROBES = 8

MAX_ORDER = 65_536
"""The largest number of elements of a group; an orbit has one copy of X for each element."""


def as_order(order: Any) -> int:
    """The order, if it is an integer from 2 to :data:`MAX_ORDER`; a ValueError otherwise."""
    remedy = "pass how often the transformation is applied until every input is where it was"
    return integer("order", order, at_least=2, at_most=MAX_ORDER, remedy=remedy)


class CyclicTransform(abc.ABC):
    """A map G of the input space to itself, of finite order: ``G^T x = x`` for every x.

    It is the T-cyclic transformation of Sun et al. 2021, "Scalable Variational Gaussian Processes
    via Harmonic Kernel Decomposition", Definition 3.2. If ``k(G x, G x') = k(x, x')``, the kernel k
    is a sum of T orthogonal kernels (eq. 7).

    To define your own transformation, set ``order`` and implement ``__call__``. End the constructor
    with ``self.verify_order()``, which checks on random points that ``G^order x = x``::

        class SwapHalves(CyclicTransform):
            order = 2

            def __init__(self, input_dim):
                self.input_dim = input_dim
                self.verify_order()

            def __call__(self, X):
                return tf.roll(X, self.input_dim // 2, axis=-1)

    The base class computes :meth:`power` and :meth:`orbit` by iteration, so rounding errors grow
    with the order. Set ``input_dim`` or ``min_input_dim`` if the number of columns matters.
    Override :meth:`to_domain` if not every point of R^D is a valid input. Override :meth:`wrap` if
    points that differ by a period are the same.
    """

    order: int
    """The smallest T >= 2 with ``G^T`` the identity; for a Product, the number of its elements."""

    input_dim: int | None = None
    """The number of columns of X; None if any number of at least ``min_input_dim`` is allowed."""

    min_input_dim: int = 1
    """The smallest number of columns of X."""

    @abc.abstractmethod
    @check_shapes("X: [batch..., D]", "return: [batch..., D]")
    def __call__(self, X: TensorLike) -> tf.Tensor:
        """The transformed inputs G X, row by row, with the type of X.

        :raises ValueError: If X has a wrong number of columns.
        """

    shown: tuple[str, ...] = ("order",)
    """The attributes that ``repr`` shows."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={short(getattr(self, name, None))}" for name in self.shown)
        return f"{type(self).__name__}({shown})"

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of the :attr:`axes`."""
        return (self.order,)

    @property
    def axes(self) -> tuple[CyclicTransform, ...]:
        """The factors of a :class:`Product`; for any other transformation, itself alone."""
        return (self,)

    @check_shapes("X: [batch..., D]", "return: [batch..., D]")
    def power(self, X: TensorLike, exponent: int | Sequence[int]) -> tf.Tensor:
        """The transformed inputs ``G^exponent X``.

        :param exponent: An integer, or a tuple of one integer. A negative exponent applies the
            inverse; a multiple of the order returns X.
        """
        X = self.validate_input(X)
        (number,) = exponent if isinstance(exponent, Sequence) else (exponent,)
        remainder = operator.index(number) % self.order
        if remainder == 0:
            return X
        power = self._powers(_as_rows(X), np.array([remainder]))[0]
        return tf.ensure_shape(tf.reshape(power, tf.shape(X)), X.shape)

    @check_shapes("X: [batch..., D]", "return: [T, batch..., D]")
    def orbit(self, X: TensorLike) -> tf.Tensor:
        """The stacked images ``G^0 X, ..., G^{T-1} X``. The first is X itself."""
        X = self.validate_input(X)
        powers = self._powers(_as_rows(X), np.arange(1, self.order))
        powers = tf.reshape(powers, tf.concat([[self.order - 1], tf.shape(X)], axis=0))
        return tf.ensure_shape(tf.concat([X[None], powers], axis=0), [self.order, *X.shape])

    def _powers(self, X: tf.Tensor, exponents: IntArray) -> tf.Tensor:
        """The images ``G^exponent X``, ``[K, N, D]``, of X ``[N, D]`` for each of K exponents.
        The exponents are either a single number from 1 to order - 1, or all of them in order."""
        elements = [X]
        while len(elements) <= exponents[-1]:
            elements.append(self(elements[-1]))
        return tf.stack(elements[-len(exponents) :])

    def to_domain(self, normals: Array) -> Array:
        """Points in the transformation's domain, computed from standard normals ``[N, D]``."""
        return normals

    def wrap(self, difference: Array) -> Array:
        """The differences of points ``[..., D]``, reduced by whole periods."""
        return difference

    def probes(self, count: int, input_dim: int | None = None, *, seed: int = 0) -> Array:
        """Random points ``[count, D]`` in the domain of the transformation, for checks.

        :param input_dim: The number D of columns if the transformation's ``input_dim`` is None; by
            default the smallest possible number.
        :raises ValueError: If the transformation cannot have D columns.
        """
        columns = input_dim if input_dim is not None else self.input_dim or self.min_input_dim
        self._validate_columns(columns, f"input_dim={columns}")
        return self.to_domain(np.random.default_rng(seed).standard_normal((count, columns)))

    def distance(self, X: TensorLike, Y: TensorLike) -> float:
        """The largest absolute difference between coordinates of X and Y, after :meth:`wrap`. Do
        not use this method in compiled functions."""
        difference = np.asarray(X, np.float64) - np.asarray(Y, np.float64)
        return float(np.max(np.abs(self.wrap(difference)), initial=0.0))

    def validate_input(self, X: TensorLike) -> tf.Tensor:
        """X as a tensor; lists and integers become float64.

        :raises ValueError: If the number of columns is unknown, or wrong for the transformation.
        """
        X = tf.convert_to_tensor(np.asarray(X) if isinstance(X, (list, tuple)) else X)
        if not X.dtype.is_floating:
            X = tf.cast(X, tf.float64)
        columns = X.shape[-1] if X.shape.rank else None
        if columns is None:
            remedy = "pass it through tf.ensure_shape(X, [None, D])"
            rule = f"have a known number of columns for {self!r}"
            raise refusal("X", rule, f"shape {X.shape}", remedy)
        self._validate_columns(columns, f"shape {tuple(X.shape)}")
        return X

    def verify_order(self, input_dim: int | None = None) -> None:
        """Check the order on random points. Call this method at the end of a constructor.

        :param input_dim: The number of columns of the points if ``self.input_dim`` is None.
        :raises ValueError: If ``G^order`` is not the identity, or a smaller power is.
        """
        as_order(self.order)
        with tf.init_scope():
            X = self.probes(NUM_PROBES, input_dim)
            shape = tuple(self(X).shape)
            if shape != X.shape:
                raise ValueError(
                    f"{self!r} maps inputs of shape {X.shape} to {shape}; its __call__ must return "
                    "the shape it is given."
                )
            power, exponent, error = X, 0, np.inf
            while exponent < self.order and not error <= same(X, power):
                power, exponent = self(power), exponent + 1
                error = self.distance(power, X)
        if not error <= same(X, power):
            raise ValueError(
                f"{self!r} is not of order {self.order}: applied {self.order} times it moves a "
                f"point by {error:.3g}; pass the order that takes every point back to itself."
            )
        if exponent == 1:
            raise ValueError(f"{self!r} is the identity, which decomposes nothing; leave it out.")
        if exponent < self.order:
            raise ValueError(
                f"{self!r} is not of order {self.order}: its power {exponent} is the identity "
                f"already; pass order={exponent}."
            )

    def _validate_columns(self, columns: int, found: str) -> None:
        if columns == self.input_dim or self.input_dim is None and columns >= self.min_input_dim:
            return
        needed = self.input_dim or f"at least {self.min_input_dim}"
        remedy = "pass X with those columns, or a transformation made for the columns of X"
        raise refusal("X", f"have {needed} columns for {self!r}", f"{columns} ({found})", remedy)


def same(*points: Array) -> float:
    """The distance below which points, or images of the points, count as equal."""
    return TOLERANCE * max(float(np.max(np.abs(X), initial=0.0)) for X in points)


def _as_rows(X: tf.Tensor) -> tf.Tensor:
    """The rows ``[N, D]`` of X ``[batch..., D]``."""
    return X if X.shape.rank == 2 else tf.reshape(X, [-1, X.shape[-1]])
