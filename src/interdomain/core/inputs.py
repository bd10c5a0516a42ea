"""The inputs of models: the number of columns of X, if it is unknown when a graph is built.

``tf.TensorSpec([None, None])`` and ``tf.TensorSpec(None)`` leave the number open, but families
need it. In most cases, an inducing variable and its kernel determine it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import instance
from .latents import LatentGPs, latent_gps
from .pairs import Kuf_in_domain, num_columns_of_any

# The errors of TensorFlow, check_shapes and the dispatchers for wrong shapes or types.
_MISFITS = (NotImplementedError, ShapeMismatchError, tf.errors.InvalidArgumentError)


def num_columns_of_latents(latents: Iterable[LatentGPs]) -> int | None:
    """The number of columns of X for the first latent GP that determines it; None if none does."""
    return num_columns_of_any(
        (inducing_variable, group.kernel)
        for group in latents
        for inducing_variable in group.inducing_variables
    )


def num_columns_of_model(model: Any) -> int | None:
    """The number of columns of X; None if the model does not determine it."""
    layer = getattr(model, "f_layers", [model])[0]  # the first layer of a deep GP
    columns = getattr(layer, "num_columns", getattr(layer, "input_dim", None))
    if columns is not None:
        return int(columns)
    inputs = getattr(layer, "inducing_variable", getattr(layer, "X_data", None))
    if inputs is None and hasattr(layer, "data"):
        inputs = layer.data[0]
    if not isinstance(inputs, InducingVariables):
        return None if inputs is None else int(inputs.shape[1])
    with contextlib.suppress(ValueError):  # raised if the kernel's latent GPs are not known
        return num_columns_of_latents(latent_gps(layer.kernel, inputs))
    return None


def check_inputs(model: Any, num_columns: int) -> None:
    """Check that the kernel and the inducing variable of a model or layer fit each other, and
    inputs with this number of columns; a ValueError otherwise."""
    kernel = getattr(model, "kernel", None)
    if not isinstance(kernel, gpflow.kernels.Kernel):
        return
    names = ("inducing_variable", "orthogonal_inducing_variable")
    sets = {name: part for name in names if (part := getattr(model, name, None)) is not None}
    check_parts(kernel, sets or {"kernel": kernel}, num_columns)


def check_parts(
    kernel: Kernel, parts: Mapping[str, InducingVariables | Kernel], num_columns: int
) -> None:
    """:func:`check_inputs` for a kernel and inducing variables by their names. The check passes no
    rows: shapes and types show what does not fit, and a made-up row might be invalid."""
    no_rows = tf.zeros([0, num_columns], gpflow.default_float())
    for name, part in parts.items():
        try:
            if part is kernel:
                kernel(no_rows)
            else:
                for latents in latent_gps(kernel, part):
                    Kuf_in_domain(latents.inducing_variables[0], latents.kernel, no_rows)
        except ValueError:
            raise  # this library's own errors have better messages
        except _MISFITS as error:
            kinds = " and ".join(dict.fromkeys([type(part).__name__, type(kernel).__name__]))
            if isinstance(error, NotImplementedError):
                raise ValueError(
                    f"{name}: there is no covariance between {kinds}; pass an inducing variable of "
                    "the kernel's family."
                ) from error
            made_for = [*(getattr(part, "shape", None) or ()), None, None][1]
            remedy = "build them for the columns of X"
            if made_for not in (None, num_columns):
                remedy = f"pass X with {made_for} columns, or build the {name} for {num_columns}"
            raise ValueError(
                f"data: X has {num_columns} columns, which do not fit {kinds}; {remedy}."
            ) from error


def validate_inducing_variable(name: str, inducing_variable: InducingVariables) -> None:
    """Check that the argument is an inducing variable; a ValueError otherwise."""
    remedy = "pass for example gpflow.inducing_variables.InducingPoints(Z) for an array Z"
    instance(name, inducing_variable, InducingVariables, "an inducing variable", remedy)
