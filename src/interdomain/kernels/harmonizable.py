"""Harmonizable mixture kernels: Shen, Heinonen and Kaski 2019."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from check_shapes import check_shapes, inherit_check_shapes
from gpflow.base import TensorType

from .decomposed import DecomposedKernel
from .harmonizable_component import HarmonizableComponent
from .spectral_arguments import validate_components


class HarmonizableMixture(DecomposedKernel):
    """A sum of windowed sinusoids about different centres (Shen et al. 2019, eq. 13).

    With enough of them it comes near any harmonizable covariance (Theorem 3): local patterns, each
    with frequencies of its own, that fade into each other. It is real. :meth:`from_data` finds
    centres, windows and frequencies in data, without which training rarely finds good ones.

    Inducing variables for it are one :class:`interdomain.inducing_variables.FourierFeatures` for
    each component, in a :class:`~interdomain.inducing_variables.SumInducingVariables`:
    ``FourierFeatures.for_kernel(kernel, num_frequencies)``. Or any others, such as points.

    :param components: The P components; the same number of columns each.
    :raises ValueError: If there are none, or one is not a component, or they differ in columns.
    """

    def __init__(
        self, components: Sequence[HarmonizableComponent], *, name: str | None = None
    ) -> None:
        super().__init__(name=name)
        self.components = validate_components(components, HarmonizableComponent)

    @property
    def kernels(self) -> tuple[HarmonizableComponent, ...]:
        """The components, which hold the parameters."""
        return tuple(self.components)

    @inherit_check_shapes
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        return tf.add_n([part.K(X, X2) for part in self.components])

    @inherit_check_shapes
    def K_diag(self, X: TensorType) -> tf.Tensor:
        return tf.add_n([part.K_diag(X) for part in self.components])

    @check_shapes(
        "w: [n, D]",
        "v: [k, D]",
        "return: [n, k]",
    )
    def generalized_spectral_density(self, w: TensorType, v: TensorType) -> tf.Tensor:
        """S(w, v), the sum of the components' (eq. 15): see
        :meth:`HarmonizableComponent.generalized_spectral_density`."""
        return tf.add_n([part.generalized_spectral_density(w, v) for part in self.components])

    @check_shapes(
        "x: [n, D]",
        "w: [k, D]",
        "return: [n, k]",
    )
    def wigner(self, x: TensorType, w: TensorType) -> tf.Tensor:
        """The Wigner distribution, the sum of the components' (eq. 18): see
        :meth:`HarmonizableComponent.wigner`."""
        return tf.add_n([part.wigner(x, w) for part in self.components])
