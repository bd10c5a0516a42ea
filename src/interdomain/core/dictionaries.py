"""Orthogonal dictionaries: families of features of which a model may use any subset.

Any set of spherical harmonics, or of the waves of a box, has a diagonal Kuu. A set can therefore
grow by the features that the data require.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel

from .._arguments import Array, IntArray


@dataclass(frozen=True, eq=False)
class Dictionary(abc.ABC):
    """The dictionary from which an inducing variable selects its features.

    It consists of atoms, identified by rows of integers: an atom is one feature or a small group.

    :ivar finite_rank: Whether the prior consists of the selected features, and grows with them.
    """

    finite_rank: bool = field(default=False, kw_only=True)

    @property
    @abc.abstractmethod
    def atoms(self) -> IntArray:
        """The atoms that the inducing variable contains, ``[A, k]``."""

    def arranged(self, X: Array) -> Dictionary:
        """The dictionary in its best arrangement for rows ``[N, D]`` under the present kernel, if
        there are several arrangements. The features span the same space as before."""
        return self

    @abc.abstractmethod
    def likeliest(self, X: Array, count: int) -> IntArray:
        """About ``count`` atoms of largest prior variance over rows ``[N, D]``, largest first."""

    @abc.abstractmethod
    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """The atoms next to the given atoms that are not among them, ``[C, k]``, at most ``limit``.
        Neighbours of the first atoms come first."""

    @abc.abstractmethod
    def features(self, atoms: IntArray) -> tuple[InducingVariables, Kernel]:
        """An inducing variable with these atoms, and the kernel of the dictionary."""

    def owners(self, atoms: IntArray) -> IntArray:
        """The row of the atom of each feature of :meth:`features`, ``[M]``."""
        return np.arange(len(atoms))


def rows_of(atoms: Iterable[Any], width: int) -> IntArray:
    """A matrix of atoms, ``[A, width]``, from tuples."""
    listed = list(atoms)
    return np.array(listed, np.int64).reshape([len(listed), width])


def others_than(atoms: IntArray, candidates: IntArray) -> IntArray:
    """The candidates that are not among the atoms, in their order and without repetition."""
    known = set(map(tuple, atoms.tolist()))
    new = dict.fromkeys(map(tuple, candidates.tolist()))
    return rows_of((atom for atom in new if atom not in known), atoms.shape[1])
