"""Brings a table to the scales of models, as :func:`recommend` does, with the code that does so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from gpflow import Parameter
from gpflow.functions import Function
from gpflow.likelihoods import Gaussian, Likelihood

from .._arguments import Array, as_integers, filled_matrix, finite_array, instance, real_array
from .._targets import check_targets, densities_of, number_of_latents, takes_missing
from .race import check_enough

_STANDARDISED = "(X - X.mean(axis=0)) / X.std(axis=0)"


@dataclass(frozen=True, eq=False)
class PreparedData:
    """A table, scaled.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1.
    :ivar Y: ``[N, P]``; standardised if noise is Gaussian.
    :ivar code: lines of code that turn the X and Y that were passed into these.
    :ivar image_shape: the shape of the images that the rows are; None for a table.
    """

    X: Array
    Y: Array
    code: tuple[str, ...] = field(repr=False)
    image_shape: tuple[int, ...] | None = None

    @property
    def categorical(self) -> list[int]:
        """The columns with two values."""
        two = np.all((self.X == self.X.min(axis=0)) | (self.X == self.X.max(axis=0)), axis=0)
        return np.flatnonzero(two).tolist()  # type: ignore[no-any-return]


def prepare(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    image_shape: Sequence[int] | None = None,
) -> PreparedData:
    """Bring X, and Y under Gaussian noise, to scales that suit the models.

    :param likelihood: whose targets Y must be; None for Gaussian noise.
    :param image_shape: the shape of the images, if rows are images.
    :raises ValueError: for X or Y that are not finite numbers (a frame may have categories), do not
        fit each other or do not vary in a column, Y that is unknown to the likelihood, fewer than
        20 rows, or a likelihood of which a part is a function of other X than the models have.
    """
    passed = X
    X, code = _numbers(X)
    Y = finite_array("Y", Y, (1, 2), "[N, P] or [N]", missing=takes_missing(likelihood))
    if len(Y) != len(X) or Y.size == 0:
        raise ValueError(f"Y must be [N, P] with the {len(X)} rows of X, found shape {Y.shape}.")
    Y = Y.reshape(len(X), -1)
    check_enough("X", len(X))
    if likelihood is not None:
        number_of_latents(likelihood, Y.shape[1])
        check_targets(likelihood, Y)
    if not np.all(np.nanmin(Y, axis=0) < np.nanmax(Y, axis=0)):
        raise ValueError("Y: a column does not vary; pass the targets that are to be predicted.")
    constant = np.flatnonzero(X.std(axis=0) <= 1e-12 * np.abs(X.mean(axis=0)))
    if len(constant) and image_shape is None:
        raise ValueError(
            f"X: columns {constant.tolist()} do not vary; pass the others, which tell rows apart."
        )
    code.append("X, Y = np.asarray(X, float), np.asarray(Y, float).reshape(len(Y), -1)")
    shape = None if image_shape is None else _checked_image_shape(image_shape, X)
    if shape is not None:
        X = (X - X.min()) / (X.max() - X.min())
        code.append("X = (X - X.min()) / (X.max() - X.min())")
    else:
        X = _standardised(X)
        code.append(f"X = {_STANDARDISED}")
    if likelihood is None:
        Y = _standardised(Y)
        code.append(f"Y = {_STANDARDISED.replace('X', 'Y')}")
    parts = () if likelihood is None else likelihood.submodules
    functions = [type(part).__name__ for part in parts if isinstance(part, Function)]
    if functions and not (np.shape(passed) == X.shape and np.allclose(np.asarray(passed), X)):
        raise ValueError(
            f"likelihood: a part of it is a function of X ({functions[0]}), and models have "
            "standardised X; pass a likelihood for (X - X.mean(axis=0)) / X.std(axis=0), and this "
            "as X."
        )
    return PreparedData(X, Y, tuple(code), shape)


def _numbers(X: Any) -> tuple[Array, list[str]]:
    """X as numbers, and the code that makes these of a frame: a column of zeros and ones for each
    level of a category but the first.

    :raises ValueError: naming a column of a frame that is neither numbers nor categories.
    """
    names = getattr(X, "columns", None)
    if names is None:
        rule = "a matrix [N, D], or a data frame of numbers and categories,"
        return filled_matrix("X", X, rule), []
    parts, lines = [], []
    for name in names:
        values, text = np.asarray(X[name]), f"np.asarray(X[{name!r}])"
        text_only = all(isinstance(value, str) for value in values)
        if text_only or str(X[name].dtype) == "category":
            gaps = any(value is None or value != value for value in values)
            if not gaps:
                values = (values[:, None] == np.unique(values)[1:]).astype(float)
            text += f"[:, None] == np.unique({text})[1:]"
        else:
            remedy = "pass numbers, or text for categories"
            values = real_array(f"X: column {name!r}", values, "a column", remedy)[:, None]
            gaps = not np.all(np.isfinite(values))
        if gaps:
            raise ValueError(
                f"X: column {name!r} must not have missing or infinite values; remove these rows, "
                "or fill in what is missing."
            )
        parts.append(values)
        lines.append(f"    {text},")
    return np.hstack(parts), ["X = np.column_stack([", *lines, "])"]


def _standardised(values: Array) -> Array:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


def _checked_image_shape(image_shape: Any, X: Array) -> tuple[int, ...]:
    shape = as_integers("image_shape", image_shape, "pass (height, width) or with channels")
    if len(shape) not in (2, 3) or math.prod(shape) != X.shape[1]:
        raise ValueError(
            f"image_shape must have {X.shape[1]} pixels, the columns of X, found {shape}; pass "
            "(height, width) or (height, width, channels)."
        )
    if X.min() == X.max():
        raise ValueError("X: all pixels are the same; pass images that differ.")
    return shape


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
