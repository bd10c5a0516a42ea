"""Domains of features: the box that rows have to be in, and covariances with rows in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.utilities import Dispatcher

from .._arguments import Array, BoolArray
from ..inducing_variables import SumInducingVariables
from ..inducing_variables.base import DecomposedInducingVariables
from ..kernels import DecomposedKernel, FiniteRank
from ..kernels._columns import select_columns
from .blocks import Block, pair_blocks
from .columns import with_input_columns


class Domain(NamedTuple):
    """A box, its ends included, in the columns that a kernel sees.

    :ivar lower: ``[D]``.
    :ivar upper: ``[D]``.
    :ivar repeats: Whether the prior repeats outside, so that no model should be trained on data
        there.
    :ivar remedy: What to do about rows outside, for messages.
    """

    lower: Array
    upper: Array
    repeats: bool = False
    remedy: str = "build the features with a wider one"


domain = Dispatcher("domain")
domain.__doc__ = """The box that features are made for.

``domain(inducing_variable, kernel)`` returns a :class:`Domain` for the columns that the kernel
sees, or None if there are no bounds. Outside, the Kuf of a family may be different, or carry little
information. :class:`interdomain.models.StructuredSGPR` takes no rows from there. For sums, each
block has its own domain, and for products each factor: see :func:`boxed_parts`.
"""


@domain.register(InducingVariables, Kernel)
def domain_everything(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """No end is known of other inducing variables."""
    return None


boxed_parts = Dispatcher("boxed_parts")
boxed_parts.__doc__ = """The pairs of inducing variable and kernel that may have a domain.

``boxed_parts(inducing_variable, kernel)`` returns these pairs. Inducing variables that consist of
several, each for some of the columns of X, register the pairs of these. By default there is only
the pair itself.
"""


@boxed_parts.register(InducingVariables, Kernel)
def boxed_parts_one(inducing_variable: InducingVariables, kernel: Kernel) -> list[Block]:
    """It answers for itself."""
    return [(inducing_variable, kernel)]


@boxed_parts.register(DecomposedInducingVariables, (Sum, DecomposedKernel))
def boxed_parts_sum(
    inducing_variable: DecomposedInducingVariables, kernel: Sum | DecomposedKernel
) -> list[Block]:
    """Those of the blocks."""
    pairs = pair_blocks(inducing_variable, kernel)
    return [part for pair in pairs for part in boxed_parts(*pair)]


@boxed_parts.register(InducingVariables, FiniteRank)
def boxed_parts_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank
) -> list[Block]:
    """Those of the features that the prior is made of, whatever the inducing variable is."""
    found: list[Block] = boxed_parts(kernel.inducing_variable, kernel.kernel)
    return found


Kuf_in_domain = Dispatcher("Kuf_in_domain")
Kuf_in_domain.__doc__ = """Kuf at rows that are known to be in the domain.

``Kuf_in_domain(inducing_variable, kernel, X)``, ``[M, N]``, has the values of ``Kuf`` there. Its
graph leaves out what only rows outside need, so that it does not depend on parameters that matter
only there. By default it is ``Kuf``. A family that registers it registers :func:`domain` too; a
subclass with a Kuf of its own has to register its own.
"""


@Kuf_in_domain.register(InducingVariables, Kernel, object)
def Kuf_in_domain_everywhere(
    inducing_variable: InducingVariables, kernel: Kernel, X: TensorType
) -> tf.Tensor:
    """The same as everywhere."""
    return Kuf(inducing_variable, kernel, X)


@Kuf_in_domain.register(SumInducingVariables, (Sum, DecomposedKernel), object)
def Kuf_in_domain_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel, X: TensorType
) -> tf.Tensor:
    """The blocks' own, one below the other."""
    X = with_input_columns(inducing_variable, kernel, X)
    blocks = pair_blocks(inducing_variable, kernel)
    return tf.concat([Kuf_in_domain(block, summand, X) for block, summand in blocks], axis=0)


class Box(NamedTuple):
    """The domain of one block, in columns of X.

    :ivar kind: The class of the inducing variable.
    :ivar columns: The columns that it is about, ``[D]``.
    :ivar lower: ``[D]``; the rest is as of :class:`Domain`.
    """

    kind: type
    columns: Array
    lower: Array
    upper: Array
    repeats: bool
    remedy: str

    def outside(self, X: Array) -> BoolArray:
        """Which rows are outside, ``[N]``; not a number is nowhere."""
        X = _as_computed(X[:, self.columns])
        lower, upper = _as_computed(self.lower), _as_computed(self.upper)
        outside: BoolArray = np.any((lower > X) | (upper < X), axis=1)
        return outside

    def __str__(self) -> str:
        sides = [f"[{a:.10g}, {b:.10g}]" for a, b in zip(self.lower, self.upper, strict=True)]
        word = "interval" if len(sides) == 1 else "box"
        return f"the {word} {' x '.join(sides)} of {self.kind.__name__}"


def boxes(inducing_variable: InducingVariables, kernel: Kernel, num_columns: int) -> list[Box]:
    """The domains of all parts that have one: blocks of sums, and factors of products.

    :param num_columns: Of X.
    :raises ValueError: If a sum does not have one block per summand, or a product one for each
        factor, or a domain does not have as many columns as its kernel.
    """
    found: list[Box] = []
    for block, part in boxed_parts(inducing_variable, kernel):
        own: Domain | None = domain(block, part)
        if own is None:
            continue
        with tf.init_scope():  # numbers, also while a graph is made
            columns = select_columns(part, np.arange(num_columns)[None]).numpy()[0]
        lower, upper = (np.reshape(np.asarray(end, np.float64), [-1]) for end in own[:2])
        if not len(lower) == len(upper) == len(columns):
            raise ValueError(
                f"X must have as many columns as {type(block).__name__} is made for, "
                f"{len(lower)}, found {len(columns)} that {type(part).__name__} sees; select them "
                "with the kernel's active_dims, or pass a sum of kernels."
            )
        found.append(Box(type(block), columns, lower, upper, own.repeats, own.remedy))
    return found


def outside_of_any(boxes: Sequence[Box], X: Array) -> BoolArray:
    """Which rows are outside of a box, ``[N]``."""
    outside = np.zeros(len(X), np.bool_)
    for box in boxes:
        outside |= box.outside(X)
    return outside


def extent_of(X: Array) -> Array:
    """The lowest and the highest numbers of columns, ``[2, D]``; NaN counts for nothing."""
    return np.stack([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])


def complaint(
    boxes: Sequence[Box], X: Array, count: int, total: int, rows: str = "rows of X"
) -> tuple[str, str]:
    """What is wrong with rows that are outside, such as "3 of 500 rows of X are outside of the
    interval [-2, 12] of IntervalFourierFeatures: column 0 goes from -3 to 11"; and the remedy.

    :param boxes: At least one of which does not hold the rows.
    :param X: All rows, or the :func:`extent_of` them.
    :param count: The number of rows that are outside.
    :param total: The number of all.
    :param rows: What they are called.
    """
    messages: dict[str, str] = {}  # each once: latent GPs may have the same
    extent = extent_of(X)
    for box in boxes:
        low, high = extent[:, box.columns]
        beyond = _as_computed(low) < _as_computed(box.lower)
        beyond |= _as_computed(high) > _as_computed(box.upper)
        ranges = [
            f"column {box.columns[k]} goes from {low[k]:.10g} to {high[k]:.10g}"
            for k in np.flatnonzero(beyond)
        ]
        if ranges:
            messages.setdefault(f"{box}: {', '.join(ranges)}", box.remedy)
    verb = "is" if count == 1 else "are"
    what = f"{count} of {total} {rows} {verb} outside of {'; and of '.join(messages)}"
    return what, next(iter(messages.values()))


def _as_computed(values: Any) -> Array:
    """In the type in which Kuf compares them: rounding keeps what is equal equal."""
    with np.errstate(over="ignore"):
        rounded: Array = np.asarray(values).astype(gpflow.default_float(), copy=False)
    return rounded
