"""Inducing variables that combine other inducing variables, of several kernels or latent GPs."""

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
from .functionals import LinearFunctional, Places
from .pairs import Kuf_in_domain, boxed_parts, num_columns_of_any


class CombinedInducingVariables(InterDomainInducingVariables, abc.ABC):
    """Base class of inducing variables that combine the features of several inducing variables."""

    @abc.abstractmethod
    def pairs(self, kernel: Any) -> list[Block]:
        """Each inducing variable with its part of the kernel."""

    @abc.abstractmethod
    def _combined(self, features: Sequence[tf.Tensor]) -> tf.Tensor:
        """The features ``[M, ...]``, computed from the features of each pair, ``[M_i, ...]``."""

    def Kuf(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The combination of the pairs' covariances; each covariance is computed once."""
        X = with_columns(X, self.num_columns(kernel))
        return self._combined([Kuf(*pair, X) for pair in self.pairs(kernel)])

    def Kuf_in_domain(self, kernel: Any, X: TensorType) -> tf.Tensor:
        """The combination of the pairs' covariances at rows inside their domains."""
        X = with_columns(X, self.num_columns(kernel))
        return self._combined([Kuf_in_domain(*pair, X) for pair in self.pairs(kernel)])

    def acted_Kuf(
        self, kernel: Any, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        return self._acted(kernel, functional, places, in_domain=False)

    def acted_Kuf_in_domain(
        self, kernel: Any, functional: LinearFunctional, places: Places
    ) -> tf.Tensor | None:
        return self._acted(kernel, functional, places, in_domain=True)

    @abc.abstractmethod
    def _acted(
        self, kernel: Any, functional: LinearFunctional, places: Places, *, in_domain: bool
    ) -> tf.Tensor | None:
        """The functional of the combined features, ``[M, n]``; None if it has no closed form.

        :param in_domain: Whether the functional needs each pair's features in their domain only.
        """

    def num_columns(self, kernel: Any) -> int | None:
        """The number of columns of X of the first pair that has one; None if no pair has one."""
        return num_columns_of_any(self.pairs(kernel))

    def parts(self, kernel: Any) -> list[Block]:
        """The parts of all pairs. A row must be inside the domain of every part."""
        return [part for pair in self.pairs(kernel) for part in boxed_parts(*pair)]


def checked_list(name: str, values: Any, each: str, *, optional: bool = False) -> list[Any]:
    """A list of inducing variables, checked, one for each part of a kernel.

    :param each: The noun for a part, such as "summand", for messages.
    :param optional: Whether an entry may be None.
    :raises ValueError: If the list is empty, or an entry is not an inducing variable.
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
    """The distinct objects of a list, and for each entry its place among them (None for None).
    GPflow's listings then show each parameter once."""
    distinct = {id(entry): entry for entry in entries if entry is not None}
    places = {key: place for place, key in enumerate(distinct)}
    return list(distinct.values()), tuple(places.get(id(entry)) for entry in entries)


# For GPflow's classes of the same names, models use dense matrices in every case. With the classes
# below, latent GPs share computations, and only unstructured matrices are factorised.


class SharedIndependentInducingVariables(
    gpflow.inducing_variables.SharedIndependentInducingVariables
):
    """One inducing variable that all latent GPs of a multi-output kernel share.

    Kuu keeps its structure, unlike in GPflow's class of this name. The kernel is a
    ``gpflow.kernels.SharedIndependent``, ``SeparateIndependent`` or ``LinearCoregionalization``.
    Models also accept the inducing variable itself, without this wrapper, with the same meaning.
    The wrapper is needed if GPflow calls ``Kuu`` and ``Kuf`` for several outputs.

    :param inducing_variable: The inducing variable of every latent GP.
    :raises ValueError: If the argument is not an inducing variable.
    """

    def __init__(self, inducing_variable: InducingVariables) -> None:
        instance("inducing_variable", inducing_variable, InducingVariables, "an inducing variable")
        super().__init__(inducing_variable)


class SeparateIndependentInducingVariables(
    gpflow.inducing_variables.SeparateIndependentInducingVariables
):
    """A separate inducing variable for each latent GP of a multi-output kernel.

    Kuu keeps its structure, unlike in GPflow's class of this name. The entries may have different
    sizes. GPflow's models have one ``q_mu`` for all latent GPs, with as many rows as the largest
    entry. A latent GP with fewer variables uses the first rows of its column of ``q_mu``.

    :param inducing_variable_list: One inducing variable for each latent GP of the kernel, in order.
        If latent GPs share an inducing variable (the same object) and a kernel, they also share its
        computations.
    :raises ValueError: If the list is empty, or an entry is not an inducing variable.
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
        """``(M, D, L)``; D is None if the entries have different D."""
        columns = {entry.shape[1] if entry.shape else None for entry in self.inducing_variable_list}
        only = columns.pop() if len(columns) == 1 else None
        size = self.num_inducing
        return (size if isinstance(size, int) else None, only, len(self.inducing_variable_list))


def num_inducing(inducing_variable: InducingVariables) -> int | tf.Tensor:
    """The number of variables: an integer if it is known statically, otherwise a tensor."""
    size = inducing_variable.shape[0] if inducing_variable.shape else None
    return inducing_variable.num_inducing if size is None else size
