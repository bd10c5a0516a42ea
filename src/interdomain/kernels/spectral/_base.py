"""The base classes of spectral mixtures and of their components."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

import gpflow
import tensorflow as tf
from check_shapes import inherit_check_shapes
from gpflow.base import TensorType

from ..._arguments import items
from ..._tracing import unconverted
from .._columns import of_columns, select_columns
from ..decomposed import DecomposedKernel
from ._gaussian_factors import gaussian_of_lag, outer_product


class MixtureComponent(gpflow.kernels.Kernel, metaclass=abc.ABCMeta):
    """Sums of products of waves, times a squared exponential of the differences of inputs."""

    dimension: int
    """The number D of columns the kernel works on."""

    @abc.abstractmethod
    def _waves(self, *inputs: TensorType) -> tuple[tf.Tensor, list[tuple[tf.Tensor, tf.Tensor]]]:
        """The precision of the squared exponential, over ``(2 pi)^2``, ``[D, D]``; and for each of
        the inputs its columns, up to a shift, and the waves there, ``[..., N, K]``."""

    @inherit_check_shapes
    @unconverted
    def K(self, X: TensorType, X2: TensorType | None = None) -> tf.Tensor:
        if X2 is None:
            precision, [(Y, waves)] = self._waves(X)
            product = tf.linalg.matmul(waves, waves, transpose_b=True)
            return gaussian_of_lag(Y, None, precision) * product
        precision, [(Y, waves), (Y2, waves2)] = self._waves(X, X2)
        return gaussian_of_lag(Y, Y2, precision) * outer_product(waves, waves2)

    def _columns(self, X: TensorType, source: str = "frequencies have") -> tf.Tensor:
        """The active columns.

        :param source: What says how many there are, and its verb, for the message.
        :raises ValueError: If they are not as many as the frequencies have.
        """
        remedy = "pass those columns, or active_dims to the kernel"
        return of_columns(select_columns(self, X), self.dimension, f", as {source}", remedy)


Part = TypeVar("Part", bound=MixtureComponent)


class MixtureKernel(DecomposedKernel, Generic[Part], metaclass=abc.ABCMeta):
    """A sum of components of one kind, which hold the parameters.

    :param components: One or more; the same number of columns each.
    :raises ValueError: If the list is empty, an entry is of another kind, or the numbers of columns
        differ.
    """

    component_class: type[MixtureComponent]
    """The kind of component."""

    def __init__(self, components: Sequence[Part], *, name: str | None = None) -> None:
        super().__init__(name=name)
        parts = items("components", components, "a list of components")
        if not parts:
            raise ValueError(
                "components must have at least one entry, found none; pass a list of components."
            )
        for part in parts:
            if not isinstance(part, self.component_class):
                raise ValueError(
                    f"components must be {self.component_class.__name__}, found "
                    f"{type(part).__name__}; add other kernels to the mixture with +."
                )
        dimensions = {part.dimension for part in parts}
        if len(dimensions) > 1:
            raise ValueError(
                f"components must have equal numbers of columns, found {sorted(dimensions)}; pass "
                "frequencies with the same columns."
            )
        self.components = parts

    @property
    def kernels(self) -> tuple[Part, ...]:
        """The components."""
        return tuple(self.components)
