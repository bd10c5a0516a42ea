"""Linear functionals of f as functionals of the splines of each column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from ...core.averages import Blur, Mean
from ...core.functionals import Derivative, LinearFunctional, Places, Value
from ...linalg.spline_grid import SplineGrid
from ...linalg.spline_rules import SplineRule


def acted_grid(
    grid: SplineGrid, functional: LinearFunctional, places: Places | None = None
) -> SplineGrid | None:
    """The grid of splines under a functional; None if there is no closed form.

    :param grid: The grid of values.
    :param places: The rows, for means whose widths are columns of X; without rows, such means have
        no closed form.
    """
    seen = functional.seen_by(grid.columns)
    terms = []
    for weight, part in [] if seen is None else seen.terms:
        rules = [SplineRule()] * len(grid.shape)
        if isinstance(part, Derivative):
            rules[part.column] = SplineRule(order=part.order)
            weight = weight * float(grid.steps[part.column]) ** -part.order
        elif isinstance(part, Blur):
            deviations = np.broadcast_to(np.sqrt(part.variances), grid.steps.shape) / grid.steps
            rules = [SplineRule(deviation=float(deviation)) for deviation in deviations]
        elif isinstance(part, Mean) and (places is not None or not part.width_columns):
            moves = part.is_averaged(len(rules))
            widths = _widths(part, grid, places)
            rules = [SplineRule(width=w if m else 0.0) for w, m in zip(widths, moves, strict=True)]
        elif not isinstance(part, Value):
            return None
        terms.append((weight, tuple(rules)))
    return replace(grid, terms=tuple(terms))


def _widths(mean: Mean, grid: SplineGrid, places: Places | None) -> list[Any]:
    """The width of a mean in each column of the box, in cells: a number, or ``[n]``."""
    if places is None or not mean.width_columns:
        widths = np.broadcast_to(mean.widths, grid.steps.shape) / grid.steps
        return [float(width) for width in widths]
    seen = Places(tf.gather(places.inputs, grid.columns, axis=1), places.columns)
    scales: list[Any] = tf.unstack(tf.cast(mean.scales(seen), tf.float64) / grid.steps, axis=1)
    return scales
