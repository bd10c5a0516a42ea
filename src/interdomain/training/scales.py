"""Warnings of data whose scale is far from that of the model's prior.

Columns of integers count as categories, and are not checked. Nor are pixels, which kernels on
patches use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gpflow
import numpy as np
from gpflow.functions import Zero
from gpflow.kernels import Kernel
from gpflow.likelihoods import Gaussian

from .._arguments import Array, warn
from .._targets import densities_of
from ..core.columns import scaled_parts
from ..core.domains import boxes, complaint, outside_of_any
from ..core.functional_rows import ActedMean
from ..core.latents import latent_gps
from ..families.sphere.kernel import ZonalKernel

FAR = 1_000.0
"""The number of lengthscales above which, and the inverse below which, a column is far from
standardised. It also limits Y, in standard deviations of the prior."""

_MAX_ROWS = 10_000
_EQUAL = 1e-12  # the relative deviation of a constant column, which is rounding


def warn_of_data(model: Any, X: Array, Y: Array) -> None:
    """Warn once of each fault: of columns of X, of columns of Y, and of the box of features.

    :param model: A model; for a deep model, its layer of inputs is checked.
    :param X: ``[N, D]``, columns that the model uses: all rows, or the rows of one batch.
    :param Y: ``[N, P]``.
    :raises ValueError: For rows outside of a box beyond which the prior repeats, and for rows that
        cannot be inputs of a kernel on the sphere.
    """
    likelihood, X = getattr(model, "likelihood", None), np.asarray(X)
    model = getattr(model, "layer_of_inputs", model)
    if not isinstance(getattr(model, "kernel", None), Kernel) or X.ndim != 2 or not len(X):
        return
    require_acted_mean(model)
    warn_of_scales(model, X, Y, likelihood)
    try:
        latents = latent_gps(model.kernel, model.inducing_variable)
    except (AttributeError, ValueError):  # no features, or other latent GPs
        return
    pairs = [(group.inducing_variables[0], group.kernel) for group in latents]
    domains = [box for pair in pairs for box in boxes(*pair, X.shape[1])]
    outside = int(np.count_nonzero(outside_of_any(domains, X)))
    if outside:
        what, remedy = complaint(domains, X, outside, len(X))
        if np.any(outside_of_any([box for box in domains if box.repeats], X)):
            raise ValueError(f"data: {what}, beyond which the prior repeats; {remedy}.")
        warn(f"inducing_variable: {what}, where the features say little; {remedy}.")


def require_acted_mean(model: Any) -> None:
    """:raises ValueError: If rows are functionals, and the mean function is one of values."""
    kernel, mean = model.kernel, getattr(model, "mean_function", None)
    if hasattr(kernel, "acting_family") and not isinstance(mean, (ActedMean, Zero, type(None))):
        raise ValueError(
            f"mean_function must be that of functionals, found {type(mean).__name__}; pass "
            "kernel.mean_function(mean_function) to the model."
        )


def warn_of_scales(model: Any, X: Array, Y: Array, likelihood: Any = None) -> None:
    """Warn of columns of X and Y, as :func:`warn_of_data` does, for a model with a kernel.

    :param likelihood: The likelihood of the targets, if it is not the model's.
    """
    X, Y = (np.asarray(rows)[:: -(-len(X) // _MAX_ROWS)] for rows in (X, Y))
    features = getattr(model, "inducing_variable", None)
    most = max(FAR, int(getattr(features, "num_inducing", 0)))  # M features resolve M
    for part, places in _scaled_columns(model.kernel, X):
        columns = places[:, part.active_dims]
        if isinstance(part, ZonalKernel):
            part.lift.validate("data: X", columns)
            part.lift.warn("data: X", columns)
            lengths, sizes = part.lengths(), np.max(np.abs(columns), axis=0)  # 0 is its centre
        else:
            lengths, sizes = part.lengthscales.numpy(), np.ptp(columns, axis=0)
        if lengths is None:  # on the sphere itself no scale is wrong
            continue
        far = _far(sizes, lengths, most) & np.any(columns != np.round(columns), axis=0)
        if np.any(far):
            column = int(np.argmax(far))
            warn(
                "data: columns of X are far from standardised, such as column "
                f"{np.arange(places.shape[1])[part.active_dims][column]} with a size of "
                f"{sizes[column]:.3g}; pass (X - X.mean(axis=0)) / X.std(axis=0), or a "
                f"{type(part).__name__} with lengthscales (or weight_variances) to match."
            )
            break
    model_likelihood = getattr(model, "likelihood", None)
    if Y.ndim != 2 or _is_below_floor(model_likelihood if likelihood is None else likelihood, Y):
        return
    if densities_of(model_likelihood) is not Gaussian:
        return
    few: Array = X[:20].astype(gpflow.default_float())
    deviation = np.sqrt(np.mean(model.kernel(few, full_cov=False)))
    if _far(size := np.max(np.abs(Y - np.mean(model.mean_function(few)))), deviation):
        warn(
            f"data: Y is up to {size:.3g} away from the prior's mean, and the prior's standard "
            f"deviation is {deviation:.3g}; pass (Y - Y.mean(axis=0)) / Y.std(axis=0), or a "
            "mean_function and a kernel with a variance to match."
        )


def warn_of_margins(kernel: Kernel) -> None:
    """Warn of a kernel on a box whose trained lengthscales are too long for the box's margin."""
    for part in (kernel, *kernel.submodules):
        if fault := getattr(part, "fault_of_margin", None):
            warn(f"kernel: {fault}")


def _scaled_columns(kernel: Kernel, X: Array) -> Iterator[tuple[Any, Array]]:
    """The scaled parts of a kernel, each with the inputs from which it selects columns: X, or the
    places of rows with functionals."""
    for part in scaled_parts(kernel):
        if hasattr(part, "acting_family"):
            yield from _scaled_columns(part.prior, part.rows.places(X))
        else:
            yield part, X


def _is_below_floor(likelihood: Any, Y: Array) -> bool:
    """Warn if a column of Y varies by less than the least noise of a Gaussian likelihood."""
    if densities_of(likelihood) is not Gaussian:
        return False
    floor = getattr(likelihood, "variance_lower_bound", None)
    if floor is None:
        floor = gpflow.config.default_likelihood_positive_minimum()
    least, deviations = float(np.sqrt(floor)), np.std(Y.astype(np.float64), axis=0)
    rounding = _EQUAL * np.max(np.abs(Y), axis=0, initial=0.0)  # the deviation of a constant column
    below = np.flatnonzero((deviations > rounding) & (deviations < least))
    if len(below):
        warn(
            f"data: column {below[0]} of Y has a standard deviation of "
            f"{deviations[below[0]]:.3g}, less than that of the least noise of the likelihood, "
            f"{least:.3g} (a variance of {floor:.3g}), so that little of it can be learnt; pass "
            "(Y - Y.mean(axis=0)) / Y.std(axis=0)."
        )
    return bool(len(below))


def _far(sizes: Any, lengths: Any, most: float = FAR) -> Any:
    # Training may have made a lengthscale small or large, which is no fault of the data.
    too_small = (sizes > 0) & (sizes < np.minimum(lengths, 1.0) / FAR)
    return too_small | (sizes > most * np.maximum(lengths, 1.0))
