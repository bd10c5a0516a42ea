"""Products of commuting transformations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import tensorflow as tf
from check_shapes import inherit_check_shapes

from ...._arguments import Array, instance, items
from .base import MAX_ORDER, NUM_PROBES, CyclicTransform, TensorLike, same


class Product(CyclicTransform):
    """The group that commuting transformations ``G_1, ..., G_J`` generate.

    Its elements are ``G_1^{s_1} ... G_J^{s_J}`` for ``0 <= s_j < T_j``. A kernel is decomposed
    along each axis in turn (Sun et al. 2021, section 3.5). ``order`` is the number of elements,
    ``T_1 ... T_J``; ``orders`` are the T_j. A call of the product applies every G_j once.

    :param transforms: A transformation or a list of them; a Product is replaced by its axes.
    :raises ValueError: If the list is empty, or an entry is not a transformation; if two
        transformations do not commute, or need different numbers of columns; if two elements of
        the group are the same transformation; or if there are more than 65,536 elements.
    """

    def __init__(self, transforms: CyclicTransform | Sequence[CyclicTransform]) -> None:
        rule, remedy = "a transformation or a list of transformations", "pass Negation(), say"
        alone = [transforms] if isinstance(transforms, CyclicTransform) else transforms
        listed = items("transforms", alone, rule)
        for transform in listed:
            instance("transforms", transform, CyclicTransform, rule, remedy)
        self._axes = tuple(axis for transform in listed for axis in transform.axes)
        if not self._axes:
            raise ValueError("transforms must be one or more, found none; pass Negation(), say.")
        self.order = math.prod(axis.order for axis in self._axes)
        if self.order > MAX_ORDER:
            raise ValueError(
                f"transforms must generate at most {MAX_ORDER} elements, found {self.order}; pass "
                "fewer transformations, or of lower order, as an orbit has that many copies of X."
            )
        self.min_input_dim = max(axis.min_input_dim for axis in self._axes)
        fixed = {axis.input_dim for axis in self._axes if axis.input_dim is not None}
        if len(fixed) > 1 or (fixed and self.min_input_dim > max(fixed)):
            needs = ", ".join(
                f"{axis!r} needs {axis.input_dim or f'at least {axis.min_input_dim}'}"
                for axis in self._axes
            )
            raise ValueError(
                f"transforms must act on the same number of columns, found: {needs}; pass "
                "transformations made for one and the same X."
            )
        self.input_dim = max(fixed, default=None)
        self.min_input_dim = self.input_dim or self.min_input_dim
        self.verify_order(self.min_input_dim)
        with tf.init_scope():
            self._verify_commutation()
            self._verify_independence()

    @property
    def orders(self) -> tuple[int, ...]:
        return tuple(axis.order for axis in self._axes)

    @property
    def axes(self) -> tuple[CyclicTransform, ...]:
        return self._axes

    def __repr__(self) -> str:
        return f"Product([{', '.join(repr(axis) for axis in self._axes)}])"

    @inherit_check_shapes
    def __call__(self, X: TensorLike) -> tf.Tensor:
        return self.power(X, (1,) * len(self._axes))

    @inherit_check_shapes
    def power(self, X: TensorLike, exponent: int | Sequence[int]) -> tf.Tensor:
        """The transformed inputs ``G_1^{s_1} ... G_J^{s_J} X``.

        :param exponent: The tuple ``(s_1, ..., s_J)``, one integer for each axis.
        :raises ValueError: If the number of integers is not the number of axes.
        """
        exponents = exponent if isinstance(exponent, Sequence) else (exponent,)
        X = self.validate_input(X)
        for axis, s in zip(self._axes, exponents, strict=True):
            X = axis.power(X, s)
        return X

    @inherit_check_shapes
    def orbit(self, X: TensorLike) -> tf.Tensor:
        """The images of X under all elements of the group, ``[T_1 ... T_J, batch..., D]``.

        The images are in C order over ``(s_1, ..., s_J)``: the first exponent varies slowest.
        """
        X = self.validate_input(X)
        elements = X
        for axis in reversed(self._axes):
            elements = axis.orbit(elements)
        elements = tf.reshape(elements, tf.concat([[self.order], tf.shape(X)], axis=0))
        return tf.ensure_shape(elements, [self.order, *X.shape])

    def to_domain(self, normals: Array) -> Array:
        for axis in self._axes:
            normals = axis.to_domain(normals)
        return normals

    def wrap(self, difference: Array) -> Array:
        for axis in self._axes:
            difference = axis.wrap(difference)
        return difference

    def verify_order(self, input_dim: int | None = None) -> None:
        """Check the order of each axis, as a user's transformation may omit the check."""
        for axis in self._axes:
            axis.verify_order(None if axis.input_dim is not None else input_dim)

    def _verify_commutation(self) -> None:
        # One column more than needed, if allowed, because Negation() acts on all columns.
        X = self.probes(NUM_PROBES, self.input_dim or self.min_input_dim + 1)
        for (i, first), (j, second) in combinations(enumerate(self._axes), 2):
            error = self.distance(first(second(X)), second(first(X)))
            if not error <= same(X, first(X), second(X)):
                raise ValueError(
                    f"transforms must commute, but those at {i} and {j}, {first!r} and {second!r}, "
                    f"give points {error:.3g} apart when their order is changed; pass "
                    "transformations that commute, for example negations or translations of "
                    "different columns, or flips of an image along its two axes. A flip commutes "
                    "neither with a rotation by 90 degrees nor with a translation of order above "
                    "2 along its axis."
                )

    def _verify_independence(self) -> None:
        dependent = self._dependence(self.min_input_dim)
        if dependent is not None and self.input_dim is None:
            # Negation() and Negation(0) are the same map only if X has a single column.
            dependent = self._dependence(self.min_input_dim + 1)
            self.min_input_dim += dependent is None
        if dependent is not None:
            raise ValueError(
                f"transforms must be independent, but in {self!r} the element with the exponents "
                f"{dependent} is the identity, so that elements of the group coincide; leave out "
                "the transformations that the others generate."
            )

    def _dependence(self, input_dim: int) -> tuple[int, ...] | None:
        """The exponents, not all zero, of an element that is the identity; None if none is."""
        if len(self._axes) == 1:  # its order is verified already
            return None
        X = self.probes(1, input_dim)
        orbit = np.asarray(self.orbit(X))
        moved = np.abs(self.wrap(orbit - X)).max(axis=(1, 2))
        stays = np.flatnonzero(moved[1:] <= same(orbit)) + 1
        if not len(stays):
            return None
        return tuple(int(s) for s in np.unravel_index(stays[0], self.orders))
