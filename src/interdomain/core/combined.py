"""Inducing variables that are made of others: of several kernels, or of several latent GPs."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import Shape
from gpflow.base import TensorType
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingVariables

from .._arguments import instance, items
from .columns import with_columns
from .family import Block, InterDomainInducingVariables
from .pairs import Kuf_in_domain, boxed_parts, num_columns_of_any


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


# GPflow's classes of the same names send a model down a dense path, whatever is inside. With these,
# what latent GPs share is computed once, and nothing is factorised that does not have to be.


class SharedIndependentInducingVariables(
    gpflow.inducing_variables.SharedIndependentInducingVariables
):
    """One inducing variable that all latent GPs of a multi-output kernel share.

    It keeps its structure, unlike in GPflow's class of this name. The kernel is a
    ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent`` or ``LinearCoregionalization``.
    The models also take the inducing variable itself, without this wrapper, with the same meaning;
    the wrapper is needed where GPflow asks for ``Kuu`` and ``Kuf`` of several outputs.

    :param inducing_variable: The inducing variable of every latent GP.
    :raises ValueError: If it is not an inducing variable.
    """

    def __init__(self, inducing_variable: InducingVariables) -> None:
        instance("inducing_variable", inducing_variable, InducingVariables, "an inducing variable")
        super().__init__(inducing_variable)


class SeparateIndependentInducingVariables(
    gpflow.inducing_variables.SeparateIndependentInducingVariables
):
    """A separate inducing variable for each latent GP of a multi-output kernel.

    They keep their structure, unlike in GPflow's class of this name. Their sizes may differ.
    GPflow's models have one ``q_mu`` for all latent GPs, with as many rows as the largest: a latent
    GP with fewer variables uses the first rows of its column, and the other rows have no effect.

    :param inducing_variable_list: One for each latent GP of the kernel, in its order. If the same
        object is given several times, it is computed once for those latent GPs that share a kernel
        too.
    :raises ValueError: If there is none, or one is not an inducing variable.
    """

    def __init__(self, inducing_variable_list: Sequence[InducingVariables]) -> None:
        entries = checked_list("inducing_variable_list", inducing_variable_list, "latent GP")
        super().__init__(entries)

    @property
    def num_inducing(self) -> int | tf.Tensor:
        """The number M of variables of the largest entry."""
        sizes = [num_inducing(entry) for entry in self.inducing_variable_list]
        return max(sizes) if all(isinstance(size, int) for size in sizes) else tf.reduce_max(sizes)

    @property
    def shape(self) -> Shape:
        """``(M, D, L)``; D is None where entries differ in it."""
        columns = {entry.shape[1] if entry.shape else None for entry in self.inducing_variable_list}
        only = columns.pop() if len(columns) == 1 else None
        size = self.num_inducing
        return (size if isinstance(size, int) else None, only, len(self.inducing_variable_list))


def num_inducing(inducing_variable: InducingVariables) -> int | tf.Tensor:
    """The number of variables, as a number if it is known before anything is computed."""
    size = inducing_variable.shape[0] if inducing_variable.shape else None
    return inducing_variable.num_inducing if size is None else size
