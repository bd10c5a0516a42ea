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

from .._arguments import Array, as_image_shape, finite_array, instance
from .._targets import check_targets, densities_of, number_of_latents, takes_missing
from ..tables import TableScaler
from . import recipes
from .places import is_on_the_globe
from .race import check_enough

HELD_OUT = 5
"""One row in this many is held out."""

_STANDARDISED = "(X - X.mean(axis=0)) / X.std(axis=0)"


class PreparedData(NamedTuple):
    """A table, scaled.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1, and degrees remain degrees.
    :ivar Y: ``[N, P]``; standardised if noise is Gaussian.
    :ivar code: Lines of code that make X_train and Y_train of the X and Y that were passed.
    :ivar image_shape: The shape of the images that the rows are; None for a table.
    :ivar on_globe: Whether X has two columns alone, latitude and longitude in degrees.
    :ivar sentences: What the user should know of the columns.
    :ivar X_new: Rows at which the model is to predict, ``[n, D]`` scaled likewise; or None.
    """

    X: Array
    Y: Array
    code: str
    image_shape: tuple[int, ...] | None
    on_globe: bool = False
    sentences: tuple[str, ...] = ()
    X_new: Array | None = None


def prepare(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    image_shape: Sequence[int] | None = None,
    inputs: str | None = None,
    X_new: Any = None,
) -> PreparedData:
    """Bring X, and Y under Gaussian noise, to scales that suit the models; the arguments and the
    errors are those of :func:`recommend`."""
    finite_array("Y", Y, (1, 2), "[N, P] or [N]", missing=takes_missing(likelihood))
    scaler = TableScaler(X, "none")
    given = scaler(X)
    if len(Y) != len(given) or not np.size(Y):
        raise ValueError(
            f"Y must be [N, P] with the {len(given)} rows of X, found shape {np.shape(Y)}."
        )
    targets = np.asarray(Y, float).reshape(len(Y), -1)
    check_enough("X", len(given), HELD_OUT)
    if likelihood is not None:
        number_of_latents(likelihood, targets.shape[1])
        check_targets(likelihood, targets)
    if not np.all(np.nanmin(targets, axis=0) < np.nanmax(targets, axis=0)):
        raise ValueError("Y: a column does not vary; pass the targets that are to be predicted.")
    shape = None
    if image_shape is not None:
        shape = as_image_shape(image_shape)
        if math.prod(shape) != given.shape[1]:
            raise ValueError(
                f"image_shape must have {given.shape[1]} pixels, the columns of X, found {shape}; "
                "pass (height, width) or (height, width, channels)."
            )
    names = scaler.names
    on_globe, sentences = is_on_the_globe(names, given, inputs, is_table=shape is None)
    scale, what = "columns", "levels, means and deviations of these rows"
    if shape is not None:
        scale, what = "pixels", "the range of these pixels"
    elif on_globe:
        scale, what = "degrees", "latitude, then longitude"
    scaler = TableScaler(X, scale)
    rows, left_out = scaler(X), scaler.left_out
    of_targets = "Y_train, Y_mean, Y_std = standardised(Y)"
    if likelihood is None:
        targets, _, _ = recipes.standardised(Y)
    else:
        targets, of_targets = recipes.matrix(Y), "Y_train = matrix(Y)"
    of_rows = f'scaler = idm.tables.TableScaler(X, "{scale}")  # {what}\nX_train = scaler(X)'
    if left_out:
        sentences += (f"Columns of X that do not vary are left out: {', '.join(left_out)}.",)
    parts = () if likelihood is None else likelihood.submodules
    functions = [type(part).__name__ for part in parts if isinstance(part, Function)]
    if functions and not (rows.shape == np.shape(X) and np.allclose(given, rows)):
        raise ValueError(
            f"likelihood: a part of it is a function of X ({functions[0]}), and models have "
            f"standardised X; pass a likelihood for {_STANDARDISED}, and this as X."
        )
    new = None if X_new is None else _scaled_new_rows(scaler, X_new, shape)
    code = f"{of_rows}\n{of_targets}"
    return PreparedData(rows, targets, code, shape, on_globe, sentences, new)


def _scaled_new_rows(scaler: TableScaler, X_new: Any, shape: tuple[int, ...] | None) -> Array:
    """:raises ValueError: For new rows of images, none, or with other columns than X has."""
    if shape is not None:
        raise ValueError(
            "X_new must be None for images, whose distances say little, found rows; leave it out."
        )
    try:
        rows: Array = scaler(X_new)
    except ValueError as error:
        raise ValueError(f"X_new must be rows with the columns of X; found: {error}") from error
    if not len(rows):
        raise ValueError("X_new must have a row or more, found none; pass None for any rows.")
    return rows


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
