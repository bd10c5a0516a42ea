"""Checks on one row, before anything is compiled, that a model and its data fit together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from gpflow.covariances import Kuf
from gpflow.likelihoods import Likelihood

from ..covariances.latents import latent_gps
from ..models.targets import check_number_of_targets, targets_type
from ..streaming.expectations import not_finite_alone

# How TensorFlow, check_shapes and the dispatchers say that shapes or types do not fit.
_MISFITS = (ValueError, NotImplementedError, ShapeMismatchError, tf.errors.InvalidArgumentError)


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
    if num_outputs is not None and hasattr(model, "likelihood"):
        _check_outputs(model, num_outputs)


def check_inputs(model: Any, num_columns: int) -> None:
    """Check that a model, or a layer of one, takes inputs with so many columns.

    :raises ValueError: If its kernel and inducing variable do not fit together, or inputs with so
        many columns do not fit them.
    """
    kernel = getattr(model, "kernel", None)
    if not isinstance(kernel, gpflow.kernels.Kernel):
        return
    row = tf.ones([1, num_columns], gpflow.default_float())
    names = [
        name
        for name in ("inducing_variable", "orthogonal_inducing_variable")
        if isinstance(getattr(model, name, None), gpflow.inducing_variables.InducingVariables)
    ]
    for name in names or ["kernel"]:
        part = getattr(model, name)
        try:
            if part is kernel:
                kernel(row)
            else:
                for latents in latent_gps(kernel, part):
                    Kuf(latents.inducing_variables[0], latents.kernel, row)
        except _MISFITS as error:
            if type(error) is ValueError and _is_of_library(error):
                raise  # it says more than could be said here
            raise _misfit(name, part, kernel, num_columns, error) from error


def _misfit(name: str, part: Any, kernel: Any, num_columns: int, error: Exception) -> ValueError:
    kinds = " and ".join(dict.fromkeys([type(part).__name__, type(kernel).__name__]))
    if isinstance(error, NotImplementedError):
        return ValueError(
            f"{name}: there is no covariance between {kinds}; pass an inducing variable of the "
            "kernel's family."
        )
    shape = getattr(part, "shape", None)
    made_for = None if shape is None or len(shape) < 2 else shape[1]
    remedy = (
        f"pass X with {made_for} columns, or build the {name} for {num_columns}"
        if made_for not in (None, num_columns)
        else "build them for the columns of X"
    )
    return ValueError(
        f"data: X has {num_columns} columns, which do not fit {kinds}; {remedy}. "
        f"({_first_line(error)})"
    )


def _is_of_library(error: Exception) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == __name__.partition(".")[0]


def _first_line(error: Exception) -> str:
    """The first line of an error's message, without the names of TensorFlow's operations."""
    text = re.sub(r"{{.*?}}|\[Op:.*|name:$", "", str(getattr(error, "message", None) or error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


def _check_outputs(model: Any, num_columns: int) -> None:
    likelihood, number = model.likelihood, num_functions(model)
    if not isinstance(likelihood, Likelihood):
        return
    latent = likelihood.latent_dim
    if latent is not None and number not in (None, latent):
        raise ValueError(
            f"model.num_latent_gps: found {number}, but a {type(likelihood).__name__} "
            f"likelihood is of {latent} functions; build the model with num_latent_gps={latent}."
        )
    check_number_of_targets(likelihood, number, num_columns)


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
