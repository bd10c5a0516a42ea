"""Training of the parameters of a :class:`interdomain.models.DualSVGP` between two passes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import gpflow
import numpy as np
import tensorflow as tf

from ..._arguments import Array
from ...core.parameters import frozen
from ...training.lbfgs import fit_by_lbfgs
from ...training.results import NonFiniteError
from .expectations import derivatives
from .model import DualSVGP

_LARGEST_FACTOR = 4.0
"""The largest factor by which a positive parameter of the kernel changes between two passes."""

_SMALL_GAIN = 1e-7
"""The gain in nats below which L-BFGS ends between two passes."""


def train_parameters(
    model: DualSVGP, steps: int, *, share: float = 1.0, factor: float = _LARGEST_FACTOR
) -> None:
    """Train all parameters except those of the likelihood by L-BFGS, at fixed sites.

    Sites are tangents at one q, and say little about distant parameters. So all parameters change
    by the same share of the way to their optimum, positive parameters in their logarithms. A
    variance and a lengthscale that compensate for each other thus still do so.

    :param share: The share; it is reduced if a positive parameter would change by a larger factor.
    :param factor: The largest factor by which a positive parameter changes, by default four.
    """
    with frozen(model.likelihood.parameters), suppress(NonFiniteError):
        parameters = model.trainable_parameters
        before = [parameter.numpy() for parameter in parameters]
        # If L-BFGS ends with numbers that are not finite, the last finite ones are enough.
        fit_by_lbfgs(model, steps=steps, progress=False, enough=_SMALL_GAIN)
    after = [parameter.numpy() for parameter in parameters]
    positive = [(old > 0) & (new > 0) for old, new in zip(before, after, strict=True)]
    ratios = [
        np.where(which, new, 1.0) / np.where(which, old, 1.0)
        for which, old, new in zip(positive, before, after, strict=True)
    ]
    longest = max([1e-300, *(float(np.max(np.abs(np.log(ratio)))) for ratio in ratios)])
    share *= min(1.0, np.log(factor) / longest)
    for parameter, *way in zip(parameters, positive, before, after, ratios, strict=True):
        which, old, new, ratio = way
        parameter.assign(np.where(which, old * ratio**share, old + share * (new - old)))


def assign_add(variables: Sequence[tf.Variable], step: Array) -> None:
    """Add the consecutive parts of a vector to variables."""
    ends = np.cumsum([int(tf.size(variable)) for variable in variables])
    for variable, part in zip(variables, np.split(step, ends[:-1]), strict=True):
        variable.assign_add(tf.cast(part.reshape(variable.shape), variable.dtype))


def solution(matrix: Array, column: Array) -> Array:
    """The vector ``matrix^{-1} column``, without directions that the matrix does not determine."""
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
    values, directions = np.linalg.eigh(matrix / scale / scale[:, None])
    known = values > 1e-9 * np.max(values)
    parts = np.where(known, directions.T @ (column / scale) / np.where(known, values, 1.0), 0.0)
    solution: Array = directions @ parts / scale
    return solution


def slopes_of_prior(
    module: gpflow.base.Module, variables: Sequence[tf.Variable]
) -> tuple[Array, Array]:
    """The first and second derivatives of the log prior density of a module's trainable
    parameters, with respect to their unconstrained variables."""

    def density() -> tf.Tensor:
        return tf.add_n([p.log_prior_density() for p in module.trainable_parameters])

    _, _, slopes, curvatures = derivatives(density, [], variables)
    return np.asarray(slopes, np.float64), np.asarray(curvatures, np.float64)
