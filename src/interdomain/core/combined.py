"""Inducing variables that are made of those of several kernels."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables

from .._arguments import instance, items
from .columns import with_columns
from .domains import boxed_parts
from .family import Block, InterDomainInducingVariables
from .pairs import Kuf_in_domain, num_columns_of_any


class CombinedInducingVariables(InterDomainInducingVariables, abc.ABC):
    """What follows from a list of pairs, and from how their features are combined."""

    @abc.abstractmethod
    def pairs(self, kernel: Any) -> list[Block]:
        """Each inducing variable with its part of the kernel."""

    @abc.abstractmethod
    def _combined(self, features: Sequence[tf.Tensor]) -> tf.Tensor:
        """The features ``[M, ...]`` from those of each pair, ``[M_i, ...]``."""

    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The combination of the pairs' covariances, each of which is computed once."""
        X = with_columns(X, self.num_columns(kernel))
        return self._combined([Kuf(*pair, X) for pair in self.pairs(kernel)])

    def Kuf_in_domain(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The same, of what the pairs' features are in their domains."""
        X = with_columns(X, self.num_columns(kernel))
        return self._combined([Kuf_in_domain(*pair, X) for pair in self.pairs(kernel)])

    def num_columns(self, kernel: Any) -> int | None:
        """The number that the first pair knows that knows any."""
        return num_columns_of_any(self.pairs(kernel))

    def parts(self, kernel: Any) -> list[Block]:
        """Those of the pairs: a row is outside where it is outside for one of them."""
        return [part for pair in self.pairs(kernel) for part in boxed_parts(*pair)]


def checked_list(name: str, values: Any, each: str, *, optional: bool = False) -> list[Any]:
    """Inducing variables of several parts.

    :param each: What there is one for each of, in words.
    :param optional: Whether an entry may be None.
    :raises ValueError: If there is none, or one is something else.
    """
    entries = items(name, values, f"a list, one for each {each}")
    if not entries:
        raise ValueError(f"{name} must have one entry for each {each}, found none; pass a list.")
    for entry in entries:
        if not (optional and entry is None):
            remedy = "pass for example InducingPoints(Z) for an array Z"
            instance(name, entry, InducingVariables, "a list of inducing variables", remedy)
    return entries


def each_once(entries: Sequence[Any]) -> tuple[list[Any], tuple[int | None, ...]]:
    """The distinct objects, so that GPflow's listings show each parameter once, and the place among
    them that each entry has; None for None."""
    distinct = {id(entry): entry for entry in entries if entry is not None}
    places = {key: place for place, key in enumerate(distinct)}
    return list(distinct.values()), tuple(places.get(id(entry)) for entry in entries)
