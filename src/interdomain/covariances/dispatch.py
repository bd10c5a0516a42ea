"""The dispatchers ``Kuu_operator`` and ``Kvu``, and what all families share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import Dispatcher

from .._tracing import Function, unconverted
from ..inducing_variables import InterDomainInducingVariables
from ..kernels import DecomposedKernel
from ..linalg import full_operator

Kuu_operator = Dispatcher("Kuu_operator")
Kuu_operator.__doc__ = """Kuu as a linear operator that keeps its structure.

``Kuu_operator(inducing_variable, kernel, *, jitter=0.0)`` returns a positive-definite
``tf.linalg.LinearOperator`` ``[M, M]``: diagonal, block-diagonal, diagonal plus low rank or, by
default, a full matrix made of GPflow's dense ``Kuu``. ``jitter`` is added where a matrix of M rows
(or of the rows of a block) has to be factorised; diagonal operators, and those of diagonal plus low
rank, ignore it. The structured posterior and KL divergence use this function, and so does
``gpflow.models.SVGP`` through them. ``gpflow.models.SGPR`` uses the dense ``Kuu`` only;
:class:`interdomain.models.StructuredSGPR` takes its place.
"""

Kvu = Dispatcher("Kvu")
Kvu.__doc__ = """The covariance between two sets of inducing variables, ``[K, M]``.

``Kvu(iv_v, iv_u, kernel)`` is for v of ``iv_v`` and u of ``iv_u`` (Tiao et al. 2023, Appendix A).
Either may be ``InducingPoints``, whatever the other is. Other pairs are registered by their
families.
"""


def _shapes(*specs: str) -> Callable[[Function], Function]:
    """Decorate what families register: its shapes are checked, and AutoGraph leaves it as it is."""
    checked = check_shapes(*specs)

    def decorate(function: Function) -> Function:
        return unconverted(checked(function))

    return decorate


Kuf_shapes = _shapes(
    "inducing_variable: [M, D, 1]",
    "Xnew: [batch..., N, E]",
    "return: [M, batch..., N]",
)
Kuu_shapes = _shapes(
    "inducing_variable: [M, D, 1]",
    "return: [M, M]",
)
Kvu_shapes = _shapes(
    "iv_v: [K, D, 1]",
    "iv_u: [M, E, 1]",
    "return: [K, M]",
)


@Kuu_operator.register(InducingVariables, Kernel)
def Kuu_operator_full_matrix(
    inducing_variable: InducingVariables, kernel: Kernel, *, jitter: float = 0.0
) -> tf.linalg.LinearOperator:
    """The default, without known structure: the dense matrix."""
    return full_operator(Kuu(inducing_variable, kernel, jitter=jitter))


def _raise_no_covariance(inducing_variable: InducingVariables, kernel: Kernel) -> NoReturn:
    name, kernel_name = type(inducing_variable).__name__, type(kernel).__name__
    if isinstance(kernel, gpflow.kernels.MultioutputKernel):
        remedy = (
            "it has several outputs: pass both to a model, which takes them as they are; where Kuu "
            "and Kuf are needed, wrap it in interdomain.inducing_variables."
            f"SharedIndependentInducingVariables({name}(...)) or "
            "SeparateIndependentInducingVariables([...])"
        )
    elif isinstance(kernel, (gpflow.kernels.Sum, DecomposedKernel)):
        remedy = (
            f"the kernel is a sum of {len(kernel.kernels)}: pass SumInducingVariables([...]) with "
            "an inducing variable for each of its parts"
        )
    else:
        remedy = "use a kernel of the family that the inducing variable belongs to"
    raise ValueError(
        f"kernel: there is no covariance between {name} and {kernel_name}; {remedy}, see "
        f"help(interdomain.inducing_variables.{name})."
    )


@Kuu.register(InterDomainInducingVariables, Kernel)
@Kuu_shapes
def Kuu_of_operator(
    inducing_variable: InterDomainInducingVariables, kernel: Kernel, *, jitter: float = 0.0
) -> tf.Tensor:
    """The dense matrix of a family that has registered its operator, for consumers that need one;
    ``jitter`` is added as GPflow asks.

    :raises ValueError: If the inducing variable has no covariance with this kernel.
    """
    kinds = type(inducing_variable), type(kernel)
    if Kuu_operator.dispatch(*kinds) is Kuu_operator_full_matrix:
        _raise_no_covariance(inducing_variable, kernel)
    return with_jitter(Kuu_operator(inducing_variable, kernel).to_dense(), jitter)


def with_jitter(matrix: tf.Tensor, jitter: float) -> tf.Tensor:
    """The matrix with ``jitter`` added to its diagonal."""
    diagonal = tf.linalg.diag_part(matrix) + tf.cast(jitter, matrix.dtype)
    return tf.linalg.set_diag(matrix, diagonal)


@Kuf.register(InterDomainInducingVariables, Kernel, object)
def Kuf_wrong_kernel(
    inducing_variable: InterDomainInducingVariables, kernel: Kernel, Xnew: Any
) -> NoReturn:
    """:raises ValueError: Always; a family registers the kernels it works with."""
    _raise_no_covariance(inducing_variable, kernel)
