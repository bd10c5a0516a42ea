"""The base classes of spectral mixtures and of their components."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Generic, TypeVar

import gpflow
import tensorflow as tf
from gpflow.base import TensorType

from ..._arguments import items
from .._columns import select_columns, with_columns
from ..decomposed import DecomposedKernel


class MixtureComponent(gpflow.kernels.Kernel, metaclass=abc.ABCMeta):
    """A kernel that knows its number of columns."""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """The number D of columns the kernel works on."""

    def _columns(self, X: TensorType, source: str = "frequencies have") -> tf.Tensor:
        """The active columns.

        :param source: What says how many there are, and its verb, for the message.
        :raises ValueError: If they are not as many as the frequencies have.
        """
        X = with_columns(select_columns(self, X), self.dimension)
        if X.shape[-1] != self.dimension:
            raise ValueError(
                f"X must have {self.dimension} columns, as {source}, found {X.shape[-1]}; "
                "pass those columns, or active_dims to the kernel."
            )
        return X


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
