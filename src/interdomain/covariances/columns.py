"""How many columns X has, where it is not known when a graph is built.

``tf.TensorSpec([None, None])`` and ``tf.TensorSpec(None)`` leave the number open, but what families
compute depends on it. In most cases, an inducing variable and its kernel determine it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes.exceptions import ShapeMismatchError
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.utilities import Dispatcher

from ..inducing_variables import SumInducingVariables
from ..kernels import DecomposedKernel
from ..kernels._columns import num_columns, with_columns
from .blocks import Block, pair_blocks
from .latents import LatentGPs, latent_gps

# How TensorFlow, check_shapes and the dispatchers say that shapes or types do not fit.
_MISFITS = (NotImplementedError, ShapeMismatchError, tf.errors.InvalidArgumentError)

num_input_columns = Dispatcher("num_input_columns")
num_input_columns.__doc__ = """The number of columns of X that an inducing variable is made for.

``num_input_columns(inducing_variable, kernel)``; None where they do not determine it, as for a
kernel with ``active_dims``, which selects its columns from any number of them. A family registers
what it knows of itself beside its kernel's ``input_dim``.
"""


@num_input_columns.register(InducingVariables, Kernel)
def num_input_columns_of_kernel(inducing_variable: InducingVariables, kernel: Kernel) -> int | None:
    """Those that the kernel is made for, if it says so by an attribute ``input_dim``."""
    return num_columns(kernel, getattr(kernel, "input_dim", None))


@num_input_columns.register(InducingPoints, Kernel)
def num_input_columns_points(inducing_variable: InducingPoints, kernel: Kernel) -> int | None:
    """Points have all columns of X, those included that the kernel does not see."""
    columns: int | None = inducing_variable.Z.shape[-1]
    return columns


@num_input_columns.register(SumInducingVariables, (Sum, DecomposedKernel))
def num_input_columns_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel
) -> int | None:
    """One block that knows it is enough."""
    return num_columns_of_any(pair_blocks(inducing_variable, kernel))


def num_columns_of_any(pairs: Iterable[Block]) -> int | None:
    """The number that the first pair knows that knows any; all have the same X."""
    found = (num_input_columns(*pair) for pair in pairs)
    return next((columns for columns in found if columns is not None), None)


def num_columns_of_latents(latents: Iterable[LatentGPs]) -> int | None:
    """The number that any of the latent GPs knows."""
    return num_columns_of_any(
        (inducing_variable, of_one.kernel)
        for of_one in latents
        for inducing_variable in of_one.inducing_variables
    )


def with_input_columns(
    inducing_variable: InducingVariables, kernel: Kernel, Xnew: TensorType
) -> tf.Tensor:
    """X with a static number of columns, if it has none and the other two know it."""
    Xnew = tf.convert_to_tensor(Xnew)
    if Xnew.shape[-1] is not None:
        return Xnew
    return with_columns(Xnew, num_input_columns(inducing_variable, kernel))


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
        except ValueError:
            raise  # one of this library says more than could be said here
        except _MISFITS as error:
            kinds = " and ".join(dict.fromkeys([type(part).__name__, type(kernel).__name__]))
            if isinstance(error, NotImplementedError):
                raise ValueError(
                    f"{name}: there is no covariance between {kinds}; pass an inducing variable of "
                    "the kernel's family."
                ) from error
            shape = getattr(part, "shape", None)
            made_for = None if shape is None or len(shape) < 2 else shape[1]
            remedy = "build them for the columns of X"
            if made_for not in (None, num_columns):
                remedy = f"pass X with {made_for} columns, or build the {name} for {num_columns}"
            raise ValueError(
                f"data: X has {num_columns} columns, which do not fit {kinds}; {remedy}."
            ) from error
