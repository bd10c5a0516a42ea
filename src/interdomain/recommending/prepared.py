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
from .places import is_on_the_globe
from .race import check_enough
from .recipes import IMPORTS

HELD_OUT = 5
"""One row in this many is held out."""

_STANDARDISED = "(X - X.mean(axis=0)) / X.std(axis=0)"

_INPUTS = """\
scaler = idm.tables.TableScaler(X{scale})  # {what}
X_train = scaler(X)
Y_train = np.asarray(Y, X_train.dtype).reshape(len(Y), -1)"""

_SCALED_TARGETS = """
Y_mean, Y_std = Y_train.mean(axis=0), Y_train.std(axis=0)
Y_train = (Y_train - Y_mean) / Y_std"""

_PREDICT = '''\
def predict(X_new):
    """The mean and the standard deviation of y at new rows, {units}."""
    mean, variance = idm.predict_in_batches(
        model, scaler(X_new), method="predict_y", progress=False
    )
    return {mean}, {deviation}
'''


class PreparedData(NamedTuple):
    """A table, scaled.

    :ivar X: ``[N, D]``, standardised; pixels are between 0 and 1, and degrees remain degrees.
    :ivar Y: ``[N, P]``; standardised if noise is Gaussian.
    :ivar code: Lines of code that make X_train and Y_train of the X and Y that were passed.
    :ivar image_shape: The shape of the images that the rows are; None for a table.
    :ivar on_globe: Whether X has two columns alone, latitude and longitude in degrees.
    :ivar predict: Code of a function that predicts y at new rows, in the units of Y.
    :ivar sentences: What the user should know of the columns.
    """

    X: Array
    Y: Array
    code: str
    image_shape: tuple[int, ...] | None
    on_globe: bool = False
    predict: str = ""
    sentences: tuple[str, ...] = ()


def prepare(
    X: Any,
    Y: Any,
    likelihood: Likelihood | None = None,
    image_shape: Sequence[int] | None = None,
    inputs: str | None = None,
) -> PreparedData:
    """Bring X, and Y under Gaussian noise, to scales that suit the models.

    :raises ValueError: As :func:`recommend`, whose arguments these are.
    """
    finite_array("Y", Y, (1, 2), "[N, P] or [N]", missing=takes_missing(likelihood))
    if not np.size(Y):
        raise ValueError(f"Y must be [N, P] with the rows of X, found shape {np.shape(Y)}.")
    scaler = TableScaler(X, "none")
    given = scaler(X)
    targets = np.asarray(Y, float).reshape(len(Y), -1)
    if len(targets) != len(given):
        raise ValueError(
            f"Y must be [N, P] with the {len(given)} rows of X, found shape {np.shape(Y)}."
        )
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
    scale, what = "", "levels, means and deviations of these rows"
    if shape is not None:
        scale, what = "pixels", "the range of these pixels"
    elif on_globe:
        scale, what = "degrees", "latitude, then longitude"
    code = _INPUTS.format(scale=f', "{scale}"' if scale else "", what=what)
    if likelihood is None:
        code += _SCALED_TARGETS
    scope = {"X": X, "Y": Y}
    exec(IMPORTS + code, scope)
    rows, left_out = scope["X_train"], scope["scaler"].left_out
    if left_out:
        sentences = (
            *sentences,
            f"Columns of X that do not vary are left out: {', '.join(left_out)}.",
        )
    parts = () if likelihood is None else likelihood.submodules
    functions = [type(part).__name__ for part in parts if isinstance(part, Function)]
    if functions and not (rows.shape == np.shape(X) and np.allclose(given, rows)):
        raise ValueError(
            f"likelihood: a part of it is a function of X ({functions[0]}), and models have "
            f"standardised X; pass a likelihood for {_STANDARDISED}, and this as X."
        )
    of_mean = ("mean * Y_std + Y_mean", "np.sqrt(variance) * Y_std")
    mean, deviation = of_mean if likelihood is None else ("mean", "np.sqrt(variance)")
    predict = _PREDICT.format(units="in the units of Y", mean=mean, deviation=deviation)
    return PreparedData(rows, scope["Y_train"], code, shape, on_globe, predict, sentences)


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
