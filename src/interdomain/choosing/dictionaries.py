"""Orthogonal dictionaries: families of features from which a model may have any set.

Spherical harmonics and the waves of a box have a diagonal Kuu, whichever of them are taken. So a
set can grow by the features that the data call for.
"""

from __future__ import annotations

import abc
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import Dispatcher

from .._arguments import Array, BoolArray, IntArray
from ..core.family import Block
from ..core.finite_rank import FiniteRank
from ..families.sphere.growth import (
    NEGLIGIBLE_SHARE,
    Spectrum,
    columns_by_scale,
    grown_chains,
)
from ..families.sphere.harmonics import SphericalHarmonics
from ..families.sphere.kernel import ZonalKernel
from ..families.sphere.mathematics.dimensions import neighbours_of, num_harmonics
from ..families.waves.box_features import BoxFourierFeatures
from ..families.waves.functions import frequencies_of
from ..families.waves.periodized import Periodized


@dataclass(frozen=True, eq=False)
class Dictionary(abc.ABC):
    """The dictionary that an inducing variable takes its features from.

    It consists of atoms, named by rows of integers. An atom is one feature or a few that are taken
    or left together.

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
        """About ``count`` atoms of the most prior variance over rows ``[N, D]``, in decreasing
        order of it."""

    @abc.abstractmethod
    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """The atoms next to some that are not among them, ``[C, k]``: those of the first atoms
        first, and no more than ``limit``."""

    @abc.abstractmethod
    def features(self, atoms: IntArray) -> Block:
        """An inducing variable that has these atoms instead, and the kernel of the dictionary."""

    def block(self, atoms: IntArray) -> Block:
        """As :meth:`features`, with a kernel that ends with them if it did so before."""
        features, kernel = self.features(atoms)
        return features, FiniteRank(kernel, features) if self.finite_rank else kernel

    def owners(self, atoms: IntArray) -> IntArray:
        """For each feature of :meth:`block` the row of its atom, ``[M]``."""
        return np.arange(len(atoms))

    def leaves_variance(self, atoms: IntArray) -> BoolArray:
        """For each feature of :meth:`features`, whether its kernel has more, so that a bound
        charges for those that are left out."""
        return np.full(len(self.owners(atoms)), not self.finite_rank)


dictionary = Dispatcher("dictionary")
dictionary.__doc__ = """``dictionary(inducing_variable, kernel)``: the :class:`Dictionary` that
features are taken from; None for an inducing variable that is not made of the features of one."""


@dictionary.register(InducingVariables, Kernel)
def dictionary_none(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """None is known."""
    return None


@dictionary.register(InducingVariables, FiniteRank)
def dictionary_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank
) -> Dictionary | None:
    """The dictionary of the base kernel, of which the prior has what the features explain."""
    base: Dictionary | None = dictionary(inducing_variable, kernel.kernel)
    return None if base is None else replace(base, finite_rank=True)


def rows_of(atoms: Iterable[Any], width: int) -> IntArray:
    """Atoms given as tuples, ``[A, width]``."""
    listed = list(atoms)
    return np.array(listed, np.int64).reshape([len(listed), width])


def others_than(atoms: IntArray, candidates: IntArray) -> IntArray:
    """The candidates that are not among the atoms, each once, in their order."""
    known = set(map(tuple, atoms.tolist()))
    new = dict.fromkeys(map(tuple, candidates.tolist()))
    return rows_of((atom for atom in new if atom not in known), atoms.shape[1])


@dataclass(frozen=True, eq=False)
class HarmonicDictionary(Dictionary):
    """The spherical harmonics of which the kernel has a positive eigenvalue: chains of degrees."""

    harmonics: SphericalHarmonics
    kernel: ZonalKernel

    @property
    def atoms(self) -> IntArray:
        return self.harmonics.chains

    def arranged(self, X: Array) -> Dictionary:
        """With the columns that matter least first; of whole degrees, which span the same then."""
        dimension, degrees = self.harmonics.dimension, self.harmonics.degrees
        whole = [num_harmonics(dimension, degree) for degree in degrees]
        if list(self.harmonics.multiplicities) != whole:
            return self
        order = columns_by_scale(self.kernel, X)
        return replace(self, harmonics=SphericalHarmonics(dimension, degrees, column_order=order))

    def likeliest(self, X: Array, count: int) -> IntArray:
        return grown_chains(self.kernel, X, self.harmonics.column_order, count)

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """Across degrees that the kernel lacks; those with too small an eigenvalue are none."""
        spectrum = Spectrum(self.kernel, self.harmonics.dimension, None)
        seen, near = set(map(tuple, atoms.tolist())), list[tuple[int, ...]]()
        for atom in atoms:
            around = neighbours_of(atom[None])
            while len(around):
                new = [chain for chain in map(tuple, around.tolist()) if chain not in seen]
                seen.update(new)
                new = [chain for chain in new if spectrum.from_degree(abs(chain[-1])) > 0]
                near += [chain for chain in new if spectrum.has_degree(abs(chain[-1]))]
                across = [chain for chain in new if not spectrum.has_degree(abs(chain[-1]))]
                around = neighbours_of(rows_of(across, atoms.shape[1]))
            if limit is not None and len(near) >= limit:
                break
        return rows_of(near, atoms.shape[1])[:limit]

    def features(self, atoms: IntArray) -> Block:
        order = self.harmonics.column_order
        harmonics = SphericalHarmonics(self.harmonics.dimension, chains=atoms, column_order=order)
        return harmonics, self.kernel


dictionary.register(SphericalHarmonics, ZonalKernel)(HarmonicDictionary)


@dataclass(frozen=True, eq=False)
class WaveDictionary(Dictionary):
    """The waves of a box: integer frequencies, of up to ``2^D`` features each."""

    waves: BoxFourierFeatures
    kernel: Periodized

    @property
    def atoms(self) -> IntArray:
        return self.waves.frequencies

    def likeliest(self, X: Array, count: int) -> IntArray:
        """The same for all rows of the box."""
        frequencies = self.kernel.largest_frequencies(count)
        whole = np.prod(self.kernel.periods) * float(self.kernel.total_variance())
        shares = np.asarray(self.kernel.spectral_density(frequencies), float) / whole
        notable: IntArray = frequencies[shares >= NEGLIGIBLE_SHARE]
        return notable

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """With one period more in one column."""
        width = atoms.shape[1]
        around = (atoms[:, None] + np.eye(width, dtype=np.int64)).reshape([-1, width])
        return others_than(atoms, around)[:limit]

    def features(self, atoms: IntArray) -> Block:
        return BoxFourierFeatures(self.waves.lower, self.waves.upper, atoms), self.kernel

    def owners(self, atoms: IntArray) -> IntArray:
        waves = BoxFourierFeatures(self.waves.lower, self.waves.upper, atoms)
        rows = {frequency: row for row, frequency in enumerate(map(tuple, atoms.tolist()))}
        return np.array([rows[tuple(f)] for f in frequencies_of(waves.functions).tolist()])


dictionary.register(BoxFourierFeatures, Periodized)(WaveDictionary)
