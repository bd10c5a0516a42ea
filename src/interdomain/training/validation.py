"""Checks on one row, before anything is compiled, that a model and its data fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.likelihoods import Likelihood

from .._targets import check_number_of_targets, targets_type
from ..covariances.columns import check_inputs
from ..sites.expectations import not_finite_alone


def check_columns(model: Any, columns: Sequence[int | None]) -> None:
    """
    Check that a model works with data that have these numbers of columns.

    :param columns: the numbers of columns of X and of Y; None where it is not known.
    :raises ValueError: if the kernel and the inducing variable do not fit together, or X does not
        fit them, or Y does not fit the likelihood.
    """
    num_inputs, num_outputs = columns
    if num_inputs is not None:
        own = getattr(model, "check_input_dim", None)  # of a deep model: its first layer knows
        check_inputs(model, num_inputs) if own is None else own(num_inputs)
    likelihood = getattr(model, "likelihood", None)
    if num_outputs is None or not isinstance(likelihood, Likelihood):
        return
    number, latent = num_functions(model), likelihood.latent_dim
    if latent is not None and number not in (None, latent):
        raise ValueError(
            f"model.num_latent_gps: found {number}, but a {type(likelihood).__name__} "
            f"likelihood is of {latent} functions; build the model with num_latent_gps={latent}."
        )
    check_number_of_targets(likelihood, number, num_outputs)


def num_functions(model: Any) -> int | None:
    """The number of latent functions of the likelihood; None if it is not known."""
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, gpflow.kernels.LinearCoregionalization):
        return int(np.shape(kernel.W)[0])
    number = getattr(model, "num_latent_gps", None)
    return number if isinstance(number, int) else None


def failing_likelihood(model: Any, X: Any, Y: Any) -> str | None:
    """What to say if the likelihood of a model alone makes numbers that are not finite, of some of
    the rows; None if it does not, or has other functions than one can tell."""
    likelihood, number = getattr(model, "likelihood", None), num_functions(model)
    if number is None or not isinstance(likelihood, Likelihood):
        return None
    X = tf.cast(X, gpflow.default_float())
    Y = tf.cast(Y, targets_type(likelihood, np.asarray(Y).dtype))
    return not_finite_alone(likelihood, X, Y, number)
