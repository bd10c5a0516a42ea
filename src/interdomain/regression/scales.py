"""Warnings of data that a model can be trained on, and of which it will learn nothing.

All are relative to what the model assumes: one, or lengthscales of its kernel, its prior variance,
the interval of its features. Columns of integers are taken for categories, and what is
said of columns does not hold for pixels, which kernels on patches see.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import (
    Kernel,
    LinearCoregionalization,
    MultioutputKernel,
    SeparateIndependent,
    SharedIndependent,
)
from gpflow.likelihoods import Gaussian

from .._arguments import Array, warn
from .._targets import densities_of
from ..core.decomposed import flat_blocks
from ..core.domains import boxes, complaint, outside_of_any
from ..core.family import Block
from ..core.latents import latent_gps
from ..core.scaled_parts import scaled_parts
from ..families.sphere.kernel import ZonalKernel

FAR = 1_000.0
"""A column is far from standardised if its range is more than so many lengthscales, or less than
the inverse of it; and so is Y, in standard deviations of the prior."""

OFFSET = 100.0
"""A column is off the centre of a zonal kernel if its mean is more than so many of its ranges away
(more than the bias, too), which leaves an angle of a hundredth to all data; and Y of its prior, in
standard deviations."""

_MAX_ROWS = 10_000
_PRIOR_ROWS = 20
_NAMED = 5


def warn_of_data(model: Any, X: Array, Y: Array) -> None:
    """One warning for each cause: columns of X, those of Y, and the interval of Fourier features.

    :param model: A model; of a deep one, the layer that the data are inputs of is looked at.
    :param X: ``[N, D]``, columns that the model takes: all rows, or those of one batch.
    :param Y: ``[N, P]``.
    :raises ValueError: For rows beyond the box of features that repeat there, or that are not on
        the sphere of a kernel's inputs.
    """
    model = getattr(model, "layer_of_inputs", model)
    if isinstance(getattr(model, "kernel", None), Kernel) and np.ndim(X) == 2 and len(X):
        warn_of_scales(model, X, Y)
        _warn_of_domain(model, np.asarray(X))


def warn_of_scales(model: Any, X: Array, Y: Array) -> None:
    """The part of :func:`warn_of_data` that is about columns, for a model with a kernel."""
    X = np.asarray(X)
    step = -(-len(X) // _MAX_ROWS)
    _warn_of_columns(model.kernel, X[::step])
    if densities_of(getattr(model, "likelihood", None)) is Gaussian and np.ndim(Y) == 2:
        _warn_of_targets(model, X[:: -(-len(X) // _PRIOR_ROWS)], np.asarray(Y)[::step])


def _warn_of_columns(kernel: Kernel, X: Array) -> None:
    complaints: dict[int, str] = {}
    columns = np.arange(X.shape[1])
    for part in scaled_parts(kernel):
        seen = columns[part.active_dims]
        if isinstance(part, ZonalKernel):
            part.lift.validate("data: X", X[:, seen])
            part.lift.warn("data: X", X[:, seen])
            lengths = part.lengths()
        else:
            lengths = part.lengthscales.numpy()
        if lengths is None:  # on the sphere itself no scale is wrong
            continue
        lengths = np.broadcast_to(lengths, seen.shape)
        for column, length in zip(seen.tolist(), lengths, strict=True):
            wrong = _wrong(X[:, column], float(length), isinstance(part, ZonalKernel))
            if wrong:
                name = type(part).__name__
                complaints.setdefault(column, f"column {column} {wrong} ({name})")
    if complaints:
        first = "; ".join([complaints[column] for column in sorted(complaints)][:_NAMED])
        more = f"; and {len(complaints) - _NAMED} more" * (len(complaints) > _NAMED)
        warn(
            f"data: columns of X are far from standardised: {first}{more}. Pass "
            "(X - X.mean(axis=0)) / X.std(axis=0), or a kernel with lengthscales (or "
            "weight_variances) to match."
        )


def _wrong(column: Array, length: float, has_centre: bool) -> str | None:
    """What is wrong with a column, in words."""
    extent, centre = float(np.ptp(column)), float(np.mean(column))
    if np.all(column == np.round(column)):
        return None
    # Training may have made a lengthscale small or large: that is no fault of the data.
    if extent > FAR * max(length, 1.0):
        return f"has a range of {extent:.3g}, {extent / length:.3g} lengthscales"
    if 0 < extent < min(length, 1.0) / FAR:
        return f"has a range of {extent:.3g}, {extent / length:.1g} of a lengthscale"
    if has_centre and abs(centre) > OFFSET * (extent + length):
        return f"has a mean of {centre:.3g} and a range of {extent:.3g}"
    return None


def _warn_of_targets(model: Any, X: Array, Y: Array) -> None:
    X = X.astype(gpflow.default_float())
    prior = model.kernel(X, full_cov=False).numpy()
    noise = model.likelihood.conditional_variance(X, np.zeros([len(X), Y.shape[1]], X.dtype))
    deviation = float(np.sqrt(np.mean(prior) + np.mean(noise)))
    centre = float(np.mean(np.asarray(model.mean_function(X))))
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


def _warn_of_domain(model: Any, X: Array) -> None:
    domains = [box for pair in blocks_of(model) for box in boxes(*pair, X.shape[1])]
    outside = int(np.count_nonzero(outside_of_any(domains, X)))
    if outside:
        what, remedy = complaint(domains, X, outside, len(X))
        if np.any(outside_of_any([box for box in domains if box.repeats], X)):
            raise ValueError(f"data: {what}, beyond which the prior repeats; {remedy}.")
        warn(f"inducing_variable: {what}, where the features say little; {remedy}.")


def blocks_of(model: Any) -> list[Block]:
    """The blocks of all latent GPs; none of a model that is made in another way."""
    model = getattr(model, "layer_of_inputs", model)
    kernel = getattr(model, "kernel", None)
    inducing_variable = getattr(model, "inducing_variable", None)
    if not isinstance(kernel, Kernel) or not isinstance(inducing_variable, InducingVariables):
        return []
    known = (SharedIndependent, SeparateIndependent, LinearCoregionalization)
    if isinstance(kernel, MultioutputKernel) and not isinstance(kernel, known):
        return []
    return [
        pair
        for latents in latent_gps(kernel, inducing_variable)
        for pair in flat_blocks(latents.inducing_variables[0], latents.kernel)
    ]
