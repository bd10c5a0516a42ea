"""What all inter-domain inducing variables of this library share."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import gpflow
import tensorflow as tf
from check_shapes import Shape
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import instance, items
from ..kernels.finite_rank import base_of


class InterDomainInducingVariables(gpflow.inducing_variables.InducingVariables, abc.ABC):
    """Inducing variables that are not values of f at points.

    This is the base class of the inducing variables of this library. Every subclass gets the
    structured posterior and KL divergence, which work with
    :func:`interdomain.covariances.Kuu_operator`. It has to register ``Kuf`` for the kernels it
    belongs to, and ``Kuu_operator``, or ``Kuu`` if that has no structure. ``gpflow.models.SVGP``
    uses this posterior. ``gpflow.models.SGPR`` has no such dispatch and factorises the dense Kuu;
    for regression, :class:`interdomain.models.StructuredSGPR` keeps the structure.

    The class does not derive from :class:`gpflow.inducing_variables.InducingPoints`: subclasses
    would inherit its covariances (kernel values between points) without a warning.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Which features these are is said once: sums over rows and compiled functions that were
        made with them would not notice another value. Parameters take one by ``assign``.

        :raises AttributeError: If an attribute that is no parameter or module gets another value.
        """
        present = vars(self).get(name, value)
        settled = not isinstance(present, (tf.Module, tf.Variable))
        if settled and present is not value and not name.startswith("_"):
            raise AttributeError(
                f"{name} of {type(self).__name__} cannot be replaced; make another one."
            )
        super().__setattr__(name, value)

    @property
    def shape(self) -> Shape:
        """``(M, None, 1)``: X may have more columns than the kernel sees, and what u belongs to
        need not be in the space of X. M is None if only a graph knows it."""
        size = self.num_inducing
        return (size if isinstance(size, int) else None, None, 1)

    def settings_of(self, kernel: Kernel) -> Any:
        """What ``Kuf`` takes from a kernel, besides the values of its parameters: numbers, text,
        arrays, modules, or mappings of these. Statistics are for models in which it is the same.

        By default the kernel, which stands for its class and all of its settings.
        """
        return kernel

    def are_among(self, others: Any) -> bool:
        """Whether all of these features are features of others, an object of the same class; by
        default it is not known that they are."""
        return False

    def complaints(self, kernel: Any, finite: bool) -> list[str]:
        """What is wrong with the features and their kernel after training, as messages; by default
        nothing is known to be.

        :param finite: Whether they are all that the prior has of the kernel.
        """
        return []


class DecomposedInducingVariables(InterDomainInducingVariables, abc.ABC):
    """Independent blocks of inducing variables, one for each summand of a kernel.

    The kernel is a ``gpflow.kernels.Sum`` or a :class:`interdomain.kernels.DecomposedKernel`.
    """

    @property
    @abc.abstractmethod
    def inducing_variables(self) -> Sequence[InducingVariables | None]:
        """One block per summand, in the order of ``kernel.kernels``; None for a summand without."""


def are_among(some: InducingVariables, features: InducingVariables) -> bool:
    """Whether all features of one inducing variable are features of another, where a family knows
    how to compare them."""
    if not isinstance(some, InterDomainInducingVariables):
        return False
    alike = isinstance(features, type(some)) or isinstance(some, type(features))
    return alike and some.are_among(features)


def complaints(inducing_variable: Any, kernel: Kernel, finite: bool = False) -> list[str]:
    """Those of any inducing variable; of a kernel of finite rank, those of its features."""
    base, features = base_of(kernel), getattr(kernel, "inducing_variable", inducing_variable)
    if not isinstance(features, InterDomainInducingVariables):
        return []
    return features.complaints(base, finite or base is not kernel)


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
