"""Covariances of kernels of finite rank: those of the kernel whose features they are made of.

u has the covariances with f that it has under the whole kernel, ``cov(u, f) = Kuu Kuu^{-1} Kuf``,
and its own Kuu; of some of the features, the rows of both. So everything is the base kernel's, for
features that the kernel consists of, and of no others.
"""

from __future__ import annotations

import gpflow
import tensorflow as tf
from check_shapes import check_shapes
from gpflow.base import TensorType
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import Kernel, Sum

from .._tracing import unconverted
from ..inducing_variables import InterDomainInducingVariables
from ..inducing_variables.base import DecomposedInducingVariables, are_among
from ..kernels import FiniteRank
from ..kernels.finite_rank import explained_covariance, explained_terms, whitened_features
from ..linalg import square_root
from .columns import num_input_columns, with_input_columns
from .dispatch import Kuu_operator, Kvu, with_jitter
from .domains import Kuf_in_domain


def is_whole(inducing_variable: InducingVariables | None, kernel: Kernel) -> bool:
    """Whether a kernel is of finite rank, and the features are all that it is made of: nothing is
    left out then, ``Kff = Kfu Kuu^{-1} Kuf``."""
    if not isinstance(kernel, FiniteRank) or not _is_as_defined(type(kernel)):
        return False
    own = kernel.inducing_variable
    if inducing_variable is own:
        return True
    return (
        inducing_variable is not None
        and are_among(inducing_variable, own)
        and are_among(own, inducing_variable)
    )


def _is_as_defined(kind: type[FiniteRank]) -> bool:
    """Whether a subclass leaves the covariances as they are."""
    return kind.K is FiniteRank.K and kind.K_diag is FiniteRank.K_diag


def is_whole_sum(inducing_variable: InducingVariables | None, kernel: Kernel) -> bool:
    """The same of a kernel, or of every summand of a sum with its block of features."""
    if type(kernel) is not Sum or not isinstance(inducing_variable, DecomposedInducingVariables):
        return is_whole(inducing_variable, kernel)
    blocks = inducing_variable.inducing_variables
    return len(blocks) == len(kernel.kernels) and all(map(is_whole_sum, blocks, kernel.kernels))


def base_for(inducing_variable: InducingVariables, kernel: FiniteRank) -> Kernel:
    """The base kernel, for features that the kernel consists of.

    :raises ValueError: For other features.
    """
    own = kernel.inducing_variable
    if inducing_variable is not own and not are_among(inducing_variable, own):
        name, own_name = type(inducing_variable).__name__, type(own).__name__
        raise ValueError(
            f"inducing_variable must be that of the FiniteRank kernel, or some of its features, "
            f"found {name} with others than its {own_name}; pass kernel.inducing_variable, or make "
            "the kernel as FiniteRank(kernel, inducing_variable)."
        )
    return kernel.kernel


@Kuu.register(InterDomainInducingVariables, FiniteRank)
@unconverted
def Kuu_finite_rank(
    inducing_variable: InterDomainInducingVariables, kernel: FiniteRank, *, jitter: float = 0.0
) -> tf.Tensor:
    """The base kernel's."""
    return Kuu(inducing_variable, base_for(inducing_variable, kernel), jitter=jitter)


@Kuu_operator.register(InterDomainInducingVariables, FiniteRank)
def Kuu_operator_finite_rank(
    inducing_variable: InterDomainInducingVariables, kernel: FiniteRank, *, jitter: float = 0.0
) -> tf.linalg.LinearOperator:
    """The base kernel's, with its structure."""
    return Kuu_operator(inducing_variable, base_for(inducing_variable, kernel), jitter=jitter)


@Kuf.register(InterDomainInducingVariables, FiniteRank, object)
@unconverted
def Kuf_finite_rank(
    inducing_variable: InterDomainInducingVariables, kernel: FiniteRank, Xnew: TensorType
) -> tf.Tensor:
    """The base kernel's."""
    return Kuf(inducing_variable, base_for(inducing_variable, kernel), Xnew)


@Kuu.register(InducingPoints, FiniteRank)
@unconverted
def Kuu_finite_rank_points(
    inducing_variable: InducingPoints, kernel: FiniteRank, *, jitter: float = 0.0
) -> tf.Tensor:
    """The base kernel's at its own points; at others the values of f there."""
    if inducing_variable is kernel.inducing_variable:
        return Kuu(inducing_variable, kernel.kernel, jitter=jitter)
    return with_jitter(kernel(inducing_variable.Z), jitter)


@Kuf.register(InducingPoints, FiniteRank, object)
@unconverted
def Kuf_finite_rank_points(
    inducing_variable: InducingPoints, kernel: FiniteRank, Xnew: TensorType
) -> tf.Tensor:
    """The base kernel's at its own points; at others the values of f there."""
    if inducing_variable is kernel.inducing_variable:
        return Kuf(inducing_variable, kernel.kernel, Xnew)
    return kernel(inducing_variable.Z, Xnew)


@Kvu.register(InterDomainInducingVariables, InterDomainInducingVariables, FiniteRank)
def Kvu_finite_rank(
    iv_v: InterDomainInducingVariables, iv_u: InterDomainInducingVariables, kernel: FiniteRank
) -> tf.Tensor:
    """The base kernel's."""
    base_for(iv_v, kernel)
    return Kvu(iv_v, iv_u, base_for(iv_u, kernel))


@num_input_columns.register(InterDomainInducingVariables, FiniteRank)
def num_input_columns_finite_rank(
    inducing_variable: InterDomainInducingVariables, kernel: FiniteRank
) -> int | None:
    """The base kernel's."""
    columns: int | None = num_input_columns(inducing_variable, kernel.kernel)
    return columns


@Kuf_in_domain.register(InducingVariables, FiniteRank, object)
def Kuf_in_domain_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank, X: TensorType
) -> tf.Tensor:
    """The base kernel's; of other points, as everywhere."""
    own = inducing_variable is kernel.inducing_variable
    if isinstance(inducing_variable, InducingPoints) and not own:
        return Kuf(inducing_variable, kernel, X)
    return Kuf_in_domain(inducing_variable, base_for(inducing_variable, kernel), X)


@whitened_features.register(InducingVariables, Kernel, object)
@check_shapes(
    "X: [batch..., N, D]",
    "return: [M, batch..., N]",
)
def whitened_features_by_operator(
    inducing_variable: InducingVariables, kernel: Kernel, X: TensorType
) -> tf.Tensor:
    """With the structure of Kuu; nothing is factorised if it is diagonal."""
    X = with_input_columns(inducing_variable, kernel, X)
    features = Kuf(inducing_variable, kernel, X)
    jitter = gpflow.config.default_jitter()
    root = square_root(Kuu_operator(inducing_variable, kernel, jitter=jitter))
    if X.shape.rank == 2:
        return root.solve(features)
    columns = root.solve(tf.reshape(features, [tf.shape(features)[0], -1]))
    return tf.reshape(columns, tf.shape(features))


@explained_covariance.register(InducingVariables, Kernel, object, object)
@check_shapes(
    "X: [batch..., N, D]",
    "X2: [batch2..., N2, D]",
    "return: [batch..., N, batch2..., N2] if X2 is not None",
    "return: [batch..., N, N] if X2 is None",
)
def explained_covariance_by_features(
    inducing_variable: InducingVariables, kernel: Kernel, X: TensorType, X2: TensorType | None
) -> tf.Tensor:
    """``A^T A``."""
    A = whitened_features(inducing_variable, kernel, X)
    if X2 is not None:
        return tf.tensordot(A, whitened_features(inducing_variable, kernel, X2), [[0], [0]])
    if A.shape.rank == 2:
        return tf.matmul(A, A, transpose_a=True)
    return tf.einsum("m...i,m...j->...ij", A, A)


@explained_terms.register(InducingVariables, Kernel)
def explained_terms_unknown(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """The diagonal takes the features."""
    return None
