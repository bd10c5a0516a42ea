"""Kernels that are sums of independent parts."""

from __future__ import annotations

import abc
from collections.abc import Sequence

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType
from gpflow.kernels import Kernel

from .._tracing import unconverted


class DecomposedKernel(gpflow.kernels.Kernel, metaclass=abc.ABCMeta):
    """Base class of kernels that are a sum ``k = sum_t k_t`` and can be cheaper than the sum.

    :class:`interdomain.inducing_variables.SumInducingVariables` takes one inducing variable per
    part, as it does for ``gpflow.kernels.Sum``. This class does not derive from ``Sum``, which
    GPflow would take apart in ``kernel + other``: the kernel would lose its own ``K``.
    """

    has_features_of_its_own: bool = False
    """Whether a single inducing variable is made for all parts together. If so,
    :class:`~interdomain.kernels.FiniteRank` takes the sum as a whole."""

    @property
    @abc.abstractmethod
    def kernels(self) -> Sequence[Kernel]:
        """The parts, each a kernel on the data space. They share this kernel's parameters."""

    @inherit_check_shapes
    @unconverted
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        """The sum over the parts; a kernel that has it at less cost overrides both methods."""
        return tf.add_n([part.K(X, X2) for part in self.kernels])

    @inherit_check_shapes
    @unconverted
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.add_n([part.K_diag(X) for part in self.kernels])

    def validate(self) -> None:  # noqa: B027 - most have nothing to check
        """Check that training has not broken the decomposition. By default, nothing is checked.

        :raises ValueError: If the parts do not sum to the kernel any more.
        """
