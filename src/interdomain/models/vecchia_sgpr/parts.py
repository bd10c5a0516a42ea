"""The parts of a model: features, neighbours, or both; and the features of a model without any."""

from __future__ import annotations

from typing import Any, TypeAlias

import gpflow
import tensorflow as tf
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.models.util import InducingPointsLike

from ..._arguments import refusal
from ...core.family import InterDomainInducingVariables
from ...core.finite_rank import is_complete
from ...linalg import Diagonal

Block: TypeAlias = tuple[Kernel, InducingVariables]
"""A kernel of finite rank, and its features."""


class UsedParts(tf.train.experimental.PythonState):  # type: ignore[misc]
    """The name of the parts that a model uses, which checkpoints of the model save.

    :ivar name: "features", "neighbours" or "both".
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def serialize(self) -> str:
        """The name, for a checkpoint."""
        return self.name

    def deserialize(self, value: Any) -> None:
        """Restore the name from a checkpoint."""
        self.name = value if isinstance(value, str) else value.decode()

    def __reduce__(self) -> Any:
        """A copy has its own name."""
        return UsedParts, (self.name,)


class NoFeatures(InterDomainInducingVariables):
    """An empty inducing variable."""

    @property
    def num_inducing(self) -> int:
        return 0

    def Kuf(self, kernel: Kernel, X: tf.Tensor) -> tf.Tensor:
        return tf.zeros(tf.concat([[0], tf.shape(X)[:-1]], axis=0), X.dtype)

    def Kuu(self, kernel: Kernel, *, jitter: float = 0.0) -> Diagonal:
        return Diagonal(tf.zeros([0], gpflow.default_float()))


class NoKernel(Kernel):
    """The kernel of the zero function."""

    def K(self, X: tf.Tensor, X2: tf.Tensor | None = None) -> tf.Tensor:
        shape = tf.concat([tf.shape(X)[:-1], tf.shape(X if X2 is None else X2)[:-1]], axis=0)
        return tf.zeros(shape, X.dtype)

    def K_diag(self, X: tf.Tensor) -> tf.Tensor:
        return tf.zeros(tf.shape(X)[:-1], X.dtype)


def features_or(
    nothing: tuple[NoKernel, NoFeatures],
    kernel: Kernel | None,
    inducing_variable: InducingPointsLike | None,
) -> tuple[Kernel, InducingPointsLike]:
    """The given kernel and features, or the empty pair ``nothing`` if both are None.

    :raises ValueError: If only one of them is None, or the features leave out a part of the kernel.
    """
    if (kernel is None) != (inducing_variable is None):
        missing = "kernel" if kernel is None else "inducing_variable"
        raise ValueError(
            f"{missing} must be given with the other of the two, found None; pass both, or "
            "neither for neighbours alone."
        )
    if kernel is None or inducing_variable is None:
        return nothing
    if not is_complete(inducing_variable, kernel):
        raise ValueError(
            "kernel must be of finite rank and have these features, so that what they leave is "
            f"left to local_kernel, found {type(kernel).__name__}; pass "
            "interdomain.kernels.FiniteRank(kernel, inducing_variable)."
        )
    return kernel, inducing_variable


def require_values(**kernels: Kernel | None) -> None:
    """:raises ValueError: If a kernel, given by its name, is one of rows that are functionals."""
    for name, kernel in kernels.items():
        if hasattr(kernel, "acting_family"):
            remedy = "pass it to interdomain.models.StructuredSGPR"
            raise refusal(
                name, "be a kernel of values, which have neighbours", "a Functional", remedy
            )
