"""Functionals of features, with references by differences and quadrature of Kuf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from scipy.special import roots_legendre

from ._arguments import Array
from .core.acting import acted_features
from .core.averages import Blur, Mean
from .core.functionals import Derivative, Places

_ROWS = 3
_WIDTH = 0.1
"""The width of a mean in standard deviations of the column."""

_PANELS, _NODES, _TAIL = 40, 5, 8.0


class Acted(NamedTuple):
    """Functionals in one column.

    :ivar names: Their names.
    :ivar closed: A function that computes them as models do, in units of the column, ``[M, n]``
        each.
    :ivar reference: A function that computes them from values of the features.
    :ivar size: The size of the features.
    """

    names: list[str]
    closed: Callable[[], list[tf.Tensor]]
    reference: Callable[[], list[tf.Tensor]]
    size: float


def acted_on(inducing_variable: InducingVariables, kernel: Kernel, X: Array) -> Acted:
    """A slope, a mean and a blur in the column that changes the features most. Functionals that the
    features refuse by a ValueError are left out.

    :param X: Rows in the domain of the features. The rows nearest to the median are used.
    """
    spread, identity = np.std(X, axis=0), np.eye(X.shape[1])
    distances = np.max(np.abs(X - np.median(X, axis=0)) / spread, axis=1)
    rows = X[np.argsort(distances)[:_ROWS]]
    places = Places(tf.constant(rows), tf.constant(rows))
    moved = [Kuf(inducing_variable, kernel, rows + _WIDTH / 2 * spread * one) for one in identity]
    values = Kuf(inducing_variable, kernel, rows).numpy()
    column = int(np.argmax([np.max(np.abs(other.numpy() - values)) for other in moved]))
    unit, direction = spread[column], identity[column]
    widths = _WIDTH * unit * direction
    deviations = widths / 16
    functionals = (unit * Derivative(column), Mean(widths), Blur(np.square(deviations)))
    steps, weights = _panels()
    density = 2 * _TAIL * np.exp(-np.square(_TAIL * steps) / 2) / np.sqrt(2 * np.pi)
    rules = (
        (1e-4 * unit * np.array([-2.0, -1, 1, 2]), np.array([1.0, -8, 8, -1]) / 12e-4),
        (steps * _WIDTH * unit / 2, weights),
        (steps * _TAIL * deviations[column], weights * density),
    )
    known = [
        (part, rule)
        for part, rule in zip(functionals, rules, strict=True)
        if _is_accepted(inducing_variable, kernel, part, places)
    ]

    def closed() -> list[tf.Tensor]:
        return [acted_features(inducing_variable, kernel, part, places) for part, _ in known]

    def reference() -> list[tf.Tensor]:
        along = np.concatenate([at for _, (at, _) in known])
        points = rows[:, None] + along[:, None] * direction
        values = Kuf(inducing_variable, kernel, np.reshape(points, [-1, len(direction)]))
        values = tf.reshape(values, [-1, len(rows), len(along)])
        parts = tf.split(values, [len(at) for _, (at, _) in known], axis=2)
        return [
            tf.linalg.matvec(part, tf.constant(factors, part.dtype))
            for part, (_, (_, factors)) in zip(parts, known, strict=True)
        ]

    return Acted([str(part) for part, _ in known], closed, reference, float(np.abs(values).max()))


def _is_accepted(
    inducing_variable: InducingVariables, kernel: Kernel, functional: Any, places: Places
) -> bool:
    try:
        acted_features(inducing_variable, kernel, functional, places)
    except ValueError:
        return False
    return True


def _panels() -> tuple[Array, Array]:
    """The nodes of a composite rule on [-1, 1], and weights that sum to one."""
    nodes, weights = roots_legendre(_NODES)
    starts = np.linspace(-1, 1, _PANELS + 1)[:-1]
    steps = np.ravel(starts[:, None] + (nodes + 1) / _PANELS)
    return steps, np.tile(weights / (2 * _PANELS), _PANELS)
