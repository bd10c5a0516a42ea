"""Brings a table to the scales of models, as :func:`recommend` does, by code that it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian, Likelihood

from .._arguments import Array, as_image_shape, filled_matrix, finite_array, instance, real_array
from .._targets import check_targets, densities_of, number_of_latents, takes_missing
from .race import check_enough

_STANDARDISED = "(X - X.mean(axis=0)) / X.std(axis=0)"


class PreparedData(NamedTuple):
    """A table, scaled.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1.
    :ivar Y: ``[N, P]``; standardised if noise is Gaussian.
    :ivar code: Lines of code that turn the X and Y that were passed into these.
    :ivar image_shape: The shape of the images that the rows are; None for a table.
    """

    X: Array
    Y: Array
    code: str
    image_shape: tuple[int, ...] | None


def prepare(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    image_shape: Sequence[int] | None = None,
) -> PreparedData:
    """Bring X, and Y under Gaussian noise, to scales that suit the models.

    :raises ValueError: As :func:`recommend`, whose arguments these are.
    """
    scope = {"X": X, "Y": Y, "np": np}
    lines = _code_for_frame(X)
    lines.append("X, Y = np.asarray(X, float), np.asarray(Y, float).reshape(len(Y), -1)")
    if getattr(X, "columns", None) is None:
        filled_matrix("X", X, "a matrix [N, D], or a data frame of numbers and categories,")
    finite_array("Y", Y, (1, 2), "[N, P] or [N]", missing=takes_missing(likelihood))
    if not np.size(Y):
        raise ValueError(f"Y must be [N, P] with the rows of X, found shape {np.shape(Y)}.")
    exec("\n".join(lines), scope)
    rows, targets = scope["X"], scope["Y"]
    if len(targets) != len(rows):
        raise ValueError(
            f"Y must be [N, P] with the {len(rows)} rows of X, found shape {np.shape(Y)}."
        )
    check_enough("X", len(rows))
    if likelihood is not None:
        number_of_latents(likelihood, targets.shape[1])
        check_targets(likelihood, targets)
    if not np.all(np.nanmin(targets, axis=0) < np.nanmax(targets, axis=0)):
        raise ValueError("Y: a column does not vary; pass the targets that are to be predicted.")
    constant = np.flatnonzero(rows.std(axis=0) <= 1e-12 * np.abs(rows.mean(axis=0)))
    if len(constant) and image_shape is None:
        raise ValueError(
            f"X: columns {constant.tolist()} do not vary; pass the others, which tell rows apart."
        )
    scales, shape = [f"X = {_STANDARDISED}"], None
    if image_shape is not None:
        shape, scales = as_image_shape(image_shape), ["X = (X - X.min()) / (X.max() - X.min())"]
        if math.prod(shape) != rows.shape[1]:
            raise ValueError(
                f"image_shape must have {rows.shape[1]} pixels, the columns of X, found {shape}; "
                "pass (height, width) or (height, width, channels)."
            )
    if likelihood is None:
        scales.append(f"Y = {_STANDARDISED}".replace("X", "Y"))
    exec("\n".join(scales), scope)
    parts = () if likelihood is None else likelihood.submodules
    functions = [type(part).__name__ for part in parts if isinstance(part, Function)]
    if functions and not (rows.shape == np.shape(X) and np.allclose(rows, scope["X"])):
        raise ValueError(
            f"likelihood: a part of it is a function of X ({functions[0]}), and models have "
            f"standardised X; pass a likelihood for {_STANDARDISED}, and this as X."
        )
    return PreparedData(scope["X"], scope["Y"], "\n".join([*lines, *scales]), shape)


def _code_for_frame(X: Any) -> list[str]:
    """The code that makes numbers of a frame: a column of zeros and ones for each level of a
    category but the first. None for a matrix."""
    names = getattr(X, "columns", None)
    if names is None:
        return []
    lines = []
    for name in names:
        values, text = np.asarray(X[name]), f"np.asarray(X[{name!r}])"
        if str(X[name].dtype) == "category" or all(isinstance(value, str) for value in values):
            has_gaps = any(value is None or value != value for value in values)
            text += f"[:, None] == np.unique({text})[1:]"
        else:
            remedy = "pass numbers, or text for categories"
            numbers = real_array(f"X: column {name!r}", values, "a column", remedy)
            has_gaps = not np.all(np.isfinite(numbers))
        if has_gaps:
            raise ValueError(
                f"X: column {name!r} must not have missing or infinite values; remove these rows, "
                "or fill in what is missing."
            )
        lines.append(f"    {text},")
    return ["X = np.column_stack([", *lines, "])"]


def checked_likelihood(likelihood: Any) -> Likelihood | None:
    """The likelihood; None if it says no more than that noise is Gaussian, of one variance that
    training finds."""
    if likelihood is None:
        return None
    instance("likelihood", likelihood, Likelihood, "a GPflow likelihood", "pass one, or None")
    if type(likelihood) is Gaussian and densities_of(likelihood) is Gaussian:
        noise = likelihood.scale if likelihood.variance is None else likelihood.variance
        if isinstance(noise, Parameter) and noise.trainable and noise.prior is None:
            return None if int(tf.size(noise)) == 1 else likelihood
    return likelihood  # type: ignore[no-any-return]
