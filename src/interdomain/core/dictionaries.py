"""Orthogonal dictionaries: families of features from which a model may have any set.

Spherical harmonics and the waves of a box have a diagonal Kuu, whichever of them are taken. So a
set can grow by the features that the data call for.
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
    """The dictionary that an inducing variable takes its features from.

    It consists of atoms, named by rows of integers: one feature each, or a few that stay together.

    :ivar finite_rank: Whether the prior consists of the features, and grows with them.
    """

    finite_rank: bool = field(default=False, kw_only=True)

    @property
    @abc.abstractmethod
    def atoms(self) -> IntArray:
        """The atoms that the inducing variable has, ``[A, k]``."""

    def arranged(self, X: Array) -> Dictionary:
        """The dictionary in the arrangement that suits rows ``[N, D]`` best under the present
        kernel, if there are several. The features span the same space as before."""
        return self

    @abc.abstractmethod
    def likeliest(self, X: Array, count: int) -> IntArray:
        """About ``count`` atoms of most prior variance over rows ``[N, D]``, the greatest first."""

    @abc.abstractmethod
    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """The atoms next to some that are not among them, ``[C, k]``: those of the first atoms
        first, and no more than ``limit``."""

    @abc.abstractmethod
    def features(self, atoms: IntArray) -> tuple[InducingVariables, Kernel]:
        """An inducing variable that has these atoms instead, and the kernel of the dictionary."""

    def owners(self, atoms: IntArray) -> IntArray:
        """For each feature of :meth:`features` the row of its atom, ``[M]``."""
        return np.arange(len(atoms))


def rows_of(atoms: Iterable[Any], width: int) -> IntArray:
    """Atoms given as tuples, ``[A, width]``."""
    listed = list(atoms)
    return np.array(listed, np.int64).reshape([len(listed), width])


def others_than(atoms: IntArray, candidates: IntArray) -> IntArray:
    """The candidates that are not among the atoms, each once, in their order."""
    known = set(map(tuple, atoms.tolist()))
    new = dict.fromkeys(map(tuple, candidates.tolist()))
    return rows_of((atom for atom in new if atom not in known), atoms.shape[1])
