"""Warnings of data that a model can be trained on, and of which it will learn nothing.

All are relative to what the model assumes: one, or lengthscales of its kernel, its prior variance,
the interval of its features. Columns of integers are taken for categories, and what is
said of columns does not hold for pixels, which kernels on patches see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import gpflow
import numpy as np
from gpflow.kernels import Combination, Kernel, MultioutputKernel, Stationary

from .._arguments import Array, warn
from ..covariances.pairs import flat_blocks
from ..inducing_variables import (
    IntervalFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from ..kernels import HarmonicKernel, ZonalKernel

FAR = 1_000.0
"""A column is far from standardised if its range is more than so many lengthscales, or less than
the inverse of it; and so is Y, in standard deviations of the prior."""

OFFSET = 100.0
"""A column is off the centre of a zonal kernel if its mean is more than so many of its ranges away
(more than the bias, too), which leaves an angle of a hundredth to all data; and Y of its prior, in
standard deviations."""

NOTABLE_COST = 0.05
"""Of the bound, for each row: what harmonics leave out of a kernel that does not end with them."""

_MAX_ROWS = 10_000
_PRIOR_ROWS = 20
_NAMED = 5


class Parts(NamedTuple):
    """What the warnings look at of a model; None for what it does not have."""

    kernel: Any
    likelihood: Any
    mean_function: Any
    inducing_variable: Any

    @classmethod
    def of(cls, model: Any) -> Parts:
        return cls(*(getattr(model, name, None) for name in cls._fields))


def warn_of_data(model: Any, X: Array, Y: Array) -> None:
    """One warning for each cause: columns of X, those of Y, and the interval of Fourier features.

    :param model: A model, or :class:`Parts` of one.
    :param X: ``[N, D]``, columns that the model takes: all rows, or those of one batch.
    :param Y: ``[N, P]``.
    """
    parts = model if isinstance(model, Parts) else Parts.of(model)
    if not isinstance(parts.kernel, Kernel) or np.ndim(X) != 2 or not len(X):
        return
    X = np.asarray(X)
    step = -(-len(X) // _MAX_ROWS)
    _warn_of_columns(parts.kernel, X[::step])
    _warn_of_interval(parts, X)
    if isinstance(parts.likelihood, gpflow.likelihoods.Gaussian) and np.ndim(Y) == 2:
        _warn_of_targets(parts, X[:: -(-len(X) // _PRIOR_ROWS)], np.asarray(Y)[::step])


def _warn_of_columns(kernel: Kernel, X: Array) -> None:
    found: dict[int, str] = {}
    columns = np.arange(X.shape[1])
    for part in _parts(kernel):
        seen = columns[part.active_dims]
        lengths = np.broadcast_to(_lengths(part), seen.shape)
        for column, length in zip(seen.tolist(), lengths, strict=True):
            wrong = _wrong(X[:, column], float(length), isinstance(part, ZonalKernel))
            if wrong:
                found.setdefault(column, f"column {column} {wrong} ({type(part).__name__})")
    if found:
        first = "; ".join([found[column] for column in sorted(found)][:_NAMED])
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        warn(
            f"data: columns of X are far from standardised: {first}{more}. Pass "
            "(X - X.mean(axis=0)) / X.std(axis=0), or a kernel with lengthscales (or "
            "weight_variances) to match."
        )


def _parts(kernel: Kernel) -> Iterator[Kernel]:
    """The kernels of columns of X that have a lengthscale, in any form."""
    parts: Iterable[Kernel]
    if isinstance(kernel, Combination):
        parts = kernel.kernels
    elif isinstance(kernel, MultioutputKernel):
        parts = kernel.latent_kernels
    elif isinstance(kernel, HarmonicKernel):
        parts = [kernel.base_kernel]
    else:
        if isinstance(kernel, (Stationary, ZonalKernel)):
            yield kernel
        return
    for part in parts:
        yield from _parts(part)


def _lengths(kernel: Kernel) -> Array:
    """Of a zonal kernel: what makes the weighted column as large as the bias."""
    if isinstance(kernel, ZonalKernel):
        lengths = np.sqrt(kernel.bias_variance.numpy() / kernel.weight_variances.numpy())
    else:
        lengths = kernel.lengthscales.numpy()
    result: Array = np.asarray(lengths, float)
    return result


def _wrong(column: Array, length: float, zonal: bool) -> str | None:
    """What is wrong with a column, in words."""
    extent, centre = float(np.ptp(column)), float(np.mean(column))
    if np.all(column == np.round(column)):
        return None
    # Training may have made a lengthscale small or large: that is no fault of the data.
    if extent > FAR * max(length, 1.0):
        return f"has a range of {extent:.3g}, {extent / length:.3g} lengthscales"
    if 0 < extent < min(length, 1.0) / FAR:
        return f"has a range of {extent:.3g}, {extent / length:.1g} of a lengthscale"
    if zonal and abs(centre) > OFFSET * (extent + length):
        return f"has a mean of {centre:.3g} and a range of {extent:.3g}"
    return None


def _warn_of_targets(parts: Parts, X: Array, Y: Array) -> None:
    X = X.astype(gpflow.default_float())
    prior = parts.kernel(X, full_cov=False).numpy()
    noise = parts.likelihood.variance_at(X).numpy()
    deviation = float(np.sqrt(np.mean(prior) + np.mean(noise)))
    centre = float(np.mean(parts.mean_function(X).numpy()))
    mean, extent = float(np.mean(Y)), float(np.max(np.ptp(Y, axis=0)))
    least, most = min(deviation, 1.0), max(deviation, 1.0)
    off = abs(mean - centre) > OFFSET * most
    if off or extent > FAR * most or 0 < extent < least / FAR:
        warn(
            f"data: Y, with a mean of {mean:.3g} and a range of {extent:.3g}, is far from the "
            f"prior's mean of {centre:.3g} and standard deviation of {deviation:.3g}; pass "
            "(Y - Y.mean(axis=0)) / Y.std(axis=0), or a mean_function and a kernel with a variance "
            "to match."
        )


def _warn_of_interval(parts: Parts, X: Array) -> None:
    variable = parts.inducing_variable
    if not isinstance(variable, (IntervalFourierFeatures, SumInducingVariables)):
        return
    for block, kernel in flat_blocks(variable, parts.kernel):
        if not isinstance(block, IntervalFourierFeatures):
            continue
        column = X[:, kernel.active_dims]
        outside = np.count_nonzero((column < block.lower) | (column > block.upper))
        if outside:
            warn(
                f"inducing_variable: {outside} of {len(X)} rows of X are outside of the interval "
                f"[{block.lower:.6g}, {block.upper:.6g}], where the features say little: X goes "
                f"from {np.min(column):.6g} to {np.max(column):.6g}; build them with "
                "IntervalFourierFeatures.from_data(X, num_frequencies)."
            )
            return


def warn_of_left_variance(model: Any, X: Array) -> None:
    """After a fit: whether the bound pays much for degrees that the kernel has and the harmonics
    lack, ``(Kff - Qff) / (2 noise)`` for each row.

    Training makes that term small, by lengthscales and a noise that the data do not ask for: what
    is left of it is the lesser part of the loss.
    """
    variable = getattr(model, "inducing_variable", None)
    charged = isinstance(model, (gpflow.models.SVGP, gpflow.models.SGPR))
    gaussian = isinstance(getattr(model, "likelihood", None), gpflow.likelihoods.Gaussian)
    if not (charged and gaussian) or hasattr(model, "orthogonal_inducing_variable"):
        return
    if not isinstance(variable, (SphericalHarmonics, SumInducingVariables)):
        return
    X = np.asarray(X, gpflow.default_float())[:: -(-len(X) // _MAX_ROWS)]
    left, ends = 0.0, set()
    for block, kernel in flat_blocks(variable, model.kernel):
        if not isinstance(block, SphericalHarmonics) or not isinstance(kernel, ZonalKernel):
            continue
        if kernel.max_degree is None:
            eigenvalues = kernel.eigenvalues(block.dimension, block.degrees).numpy()
            missing = 1 - float(np.sum(np.asarray(block.multiplicities, float) * eigenvalues))
            left += missing * float(np.mean(kernel(X, full_cov=False).numpy()))
            ends.add(block.degrees[-1])
    cost = left / (2 * float(np.mean(model.likelihood.variance_at(X).numpy())))
    if cost > NOTABLE_COST:
        degree = max(ends)
        warn(
            f"inducing_variable: the harmonics end at degree {degree}, the kernel does not, and "
            f"the bound pays {cost:.2g} a row for what is above, after a training that has made it "
            f"small at the expense of the fit; make the kernel with max_degree={degree}, of which "
            "nothing is left out, or take more degrees."
        )
