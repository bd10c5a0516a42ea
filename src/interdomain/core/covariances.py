"""Covariances of any inducing variable with any kernel: GPflow's dispatchers call the methods of a
family. Pairs that belong to no family are registered here too."""

from __future__ import annotations

from typing import NoReturn

import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import Dispatcher

from .._tracing import unconverted
from .family import InterDomainInducingVariables, with_jitter
from .finite_rank import FiniteRank, check_kernel
from .functional_kernel import ActedFeatures, Functional
from .pairs import base_kernel

Kvu = Dispatcher("Kvu")
Kvu.__doc__ = """The covariance between two sets of inducing variables, ``[K, M]``.

``Kvu(iv_v, iv_u, kernel)`` is for v of ``iv_v`` and u of ``iv_u`` (Tiao et al. 2023, Appendix A).
One of the two may be ``InducingPoints``, combined with any inducing variable. Families register all
other pairs.
"""

Kvu_shapes = check_shapes("iv_v: [K, D, 1]", "iv_u: [M, E, 1]", "return: [K, M]")


@Kuf.register(InterDomainInducingVariables, Kernel, object)
@unconverted
@check_shapes("inducing_variable: [M, D, 1]", "Xnew: [batch..., N, E]", "return: [M, batch..., N]")
def Kuf_of_family(
    inducing_variable: InterDomainInducingVariables, kernel: Kernel, Xnew: TensorType
) -> tf.Tensor:
    """Kuf from the family's method. For a kernel of finite rank, Kuf of the kernel of its features.

    :raises ValueError: If the covariance is not defined.
    """
    base = base_kernel(inducing_variable, kernel)
    if base is not kernel:
        return Kuf(inducing_variable, base, Xnew)
    check_kernel(inducing_variable, kernel)
    return inducing_variable.Kuf(kernel, Xnew)


@Kuu.register(InterDomainInducingVariables, Kernel)
@unconverted
@check_shapes("inducing_variable: [M, D, 1]", "return: [M, M]")
def Kuu_of_family(
    inducing_variable: InterDomainInducingVariables, kernel: Kernel, *, jitter: float = 0.0
) -> tf.Tensor:
    """The dense Kuu from the family's method. For a kernel of finite rank, Kuu of its base kernel.

    :raises ValueError: If the covariance is not defined.
    """
    base = base_kernel(inducing_variable, kernel)
    if base is not kernel:
        return Kuu(inducing_variable, base, jitter=jitter)
    check_kernel(inducing_variable, kernel)
    return inducing_variable.dense_Kuu(kernel, jitter)


@Kuf.register(InterDomainInducingVariables, Functional, object)
@Kuf.register(InducingPoints, Functional, object)
@unconverted
def Kuf_functional(
    inducing_variable: InducingVariables, kernel: Functional, Xnew: TensorType
) -> tf.Tensor:
    """The functionals of rows, applied to the features of the prior."""
    return ActedFeatures(inducing_variable).Kuf(kernel, Xnew)


@Kuu.register(InterDomainInducingVariables, Functional)
@Kuu.register(InducingPoints, Functional)
@unconverted
def Kuu_functional(
    inducing_variable: InducingVariables, kernel: Functional, *, jitter: float = 0.0
) -> tf.Tensor:
    """Kuu of the prior."""
    return Kuu(inducing_variable, kernel.prior, jitter=jitter)


@Kuu.register(InducingPoints, FiniteRank)
@unconverted
def Kuu_finite_rank_points(
    inducing_variable: InducingPoints, kernel: FiniteRank, *, jitter: float = 0.0
) -> tf.Tensor:
    """Kuu of the base kernel at the prior's own points; for other points the covariance of f."""
    if inducing_variable is kernel.inducing_variable:
        return Kuu(inducing_variable, kernel.kernel, jitter=jitter)
    return with_jitter(kernel(inducing_variable.Z), jitter)


@Kuf.register(InducingPoints, FiniteRank, object)
@unconverted
def Kuf_finite_rank_points(
    inducing_variable: InducingPoints, kernel: FiniteRank, Xnew: TensorType
) -> tf.Tensor:
    """Kuf of the base kernel at the prior's own points; for other points the covariance of f."""
    if inducing_variable is kernel.inducing_variable:
        return Kuf(inducing_variable, kernel.kernel, Xnew)
    return kernel(inducing_variable.Z, Xnew)


@Kvu.register(InducingVariables, InducingVariables, Kernel)
def Kvu_unknown(iv_v: InducingVariables, iv_u: InducingVariables, kernel: Kernel) -> NoReturn:
    """Raise a ValueError, because families register all pairs that have a covariance."""
    raise ValueError(
        f"iv_v, iv_u: there is no covariance between {type(iv_v).__name__} and "
        f"{type(iv_u).__name__} under {type(kernel).__name__}; use InducingPoints for one of them."
    )


@Kvu.register(InducingPoints, InducingPoints, Functional)
@Kvu.register(InducingPoints, InterDomainInducingVariables, Functional)
@Kvu.register(InterDomainInducingVariables, InducingPoints, Functional)
@Kvu.register(InterDomainInducingVariables, InterDomainInducingVariables, Functional)
def Kvu_functional(
    iv_v: InducingVariables, iv_u: InducingVariables, kernel: Functional
) -> tf.Tensor:
    """Kvu of the prior: inducing variables belong to f, whatever the rows are."""
    return Kvu(iv_v, iv_u, kernel.prior)


@Kvu.register(InducingPoints, InducingPoints, Kernel)
@Kvu_shapes
def Kvu_points_points(iv_v: InducingPoints, iv_u: InducingPoints, kernel: Kernel) -> tf.Tensor:
    """``k(w, z)`` (eq. 25)."""
    return kernel(iv_v.Z, iv_u.Z)


@Kvu.register(InducingPoints, InterDomainInducingVariables, Kernel)
@Kvu_shapes
def Kvu_points_inter_domain(
    iv_v: InducingPoints, iv_u: InterDomainInducingVariables, kernel: Kernel
) -> tf.Tensor:
    """The transpose of Kuf at the points, because v is f at points (eqs. 36 and 47)."""
    return tf.linalg.matrix_transpose(Kuf(iv_u, kernel, iv_v.Z))


@Kvu.register(InterDomainInducingVariables, InducingPoints, Kernel)
@Kvu_shapes
def Kvu_inter_domain_points(
    iv_v: InterDomainInducingVariables, iv_u: InducingPoints, kernel: Kernel
) -> tf.Tensor:
    """Kuf at the points, because u is f at points (eq. 28)."""
    return Kuf(iv_v, kernel, iv_u.Z)


@Kvu.register(InterDomainInducingVariables, InterDomainInducingVariables, FiniteRank)
def Kvu_finite_rank(
    iv_v: InterDomainInducingVariables, iv_u: InterDomainInducingVariables, kernel: FiniteRank
) -> tf.Tensor:
    """Kvu of the base kernel."""
    base_kernel(iv_v, kernel)
    return Kvu(iv_v, iv_u, base_kernel(iv_u, kernel))
