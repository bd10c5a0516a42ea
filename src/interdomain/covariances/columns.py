"""How many columns X has, where it is not known when a graph is built.

``tf.TensorSpec([None, None])`` and ``tf.TensorSpec(None)`` leave the number open, but what families
compute depends on it. In most cases, an inducing variable and its kernel determine it.
"""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.utilities import Dispatcher

from ..inducing_variables import SumInducingVariables
from ..kernels import DecomposedKernel
from ..kernels._columns import with_columns
from .pairs import Block, pair_blocks

num_input_columns = Dispatcher("num_input_columns")
num_input_columns.__doc__ = """The number of columns of X that an inducing variable is made for.

``num_input_columns(inducing_variable, kernel)``; None where they do not determine it, as for a
kernel with ``active_dims``, which selects its columns from any number of them. A family registers
what it knows of itself; by default nothing is known.
"""


@num_input_columns.register(InducingVariables, Kernel)
def num_input_columns_unknown(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """Nothing is known of other inducing variables."""
    return None


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


def with_input_columns(
    inducing_variable: InducingVariables, kernel: Kernel, Xnew: TensorType
) -> tf.Tensor:
    """X with a static number of columns, if it has none and the other two know it."""
    Xnew = tf.convert_to_tensor(Xnew)
    if Xnew.shape[-1] is not None:
        return Xnew
    return with_columns(Xnew, num_input_columns(inducing_variable, kernel))
