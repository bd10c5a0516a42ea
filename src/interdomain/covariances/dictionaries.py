"""Orthogonal dictionaries: families of features from which a model may have any set.

Spherical harmonics and the waves of a box have a diagonal Kuu, whichever of them are taken. So a
set can grow by the features that the data call for: see
:func:`interdomain.training.matching_pursuit`, which uses :func:`dictionary` alone.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Mapping, Sequence

import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum
from gpflow.utilities import Dispatcher

from ..inducing_variables import (
    PeriodicFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
)
from ..inducing_variables._eigenvalues import least_eigenvalue
from ..inducing_variables._harmonic_growth import (
    NEGLIGIBLE_SHARE,
    columns_by_scale,
    grown_chains,
    lifted_rows,
    sampled_rows,
)
from ..kernels import DecomposedKernel, FiniteRank, Periodized, ZonalKernel
from ..kernels.periodic._waves import frequencies_of
from ..sphere import num_harmonics
from ..sphere._typing import Array, IntArray
from ..sphere.chains import degrees_of, neighbours_of
from .domains import BoolArray
from .pairs import Block

_LONGEST_GAP = 2
"""So many degrees in a row that the kernel lacks have neighbours on both sides."""


class Dictionary(abc.ABC):
    """The dictionary that an inducing variable takes its features from.

    It consists of atoms, named by rows of integers. An atom is one feature or a few that are taken
    or left together.
    """

    @property
    @abc.abstractmethod
    def atoms(self) -> IntArray:
        """The atoms that the inducing variable has, ``[A, k]``."""

    @abc.abstractmethod
    def arranged(self, X: Array) -> Dictionary:
        """The dictionary in the arrangement that suits rows ``[N, D]`` best under the present
        kernel, if there are several. The features span the same space as before."""

    @abc.abstractmethod
    def likeliest(self, X: Array, count: int) -> IntArray:
        """About ``count`` atoms of the most prior variance over rows ``[N, D]``, in decreasing
        order of it."""

    @abc.abstractmethod
    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """The atoms next to some that are not among them, ``[C, k]``: those of the first atoms
        first, and no more than ``limit``."""

    @abc.abstractmethod
    def block(self, atoms: IntArray, *, alone: bool = False) -> Block:
        """An inducing variable that has these atoms instead, and the kernel it belongs to.

        :param alone: Leave out, of a sum, the blocks that are of no dictionary, and take the kernel
            that the dictionary is of in place of one that ends with its features.
        """

    def charged(self, atoms: IntArray) -> BoolArray:
        """For each feature of :meth:`block`, ``alone``, whether its kernel has more features, so
        that a bound charges for those that are left out."""
        return np.ones(len(self.owners(atoms, alone=True)), np.bool_)

    @abc.abstractmethod
    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        """For each feature of :meth:`block` the row of its atom, ``[M]``; -1 for others."""


dictionary = Dispatcher("dictionary")
dictionary.__doc__ = """The dictionary that features are taken from.

``dictionary(inducing_variable, kernel)`` returns a :class:`Dictionary`, or None for an inducing
variable that is not made of the features of one.
"""


@dictionary.register(InducingVariables, Kernel)
def dictionary_none(inducing_variable: InducingVariables, kernel: Kernel) -> None:
    """None is known."""
    return None


def _rows(atoms: Sequence[tuple[int, ...]], width: int) -> IntArray:
    return np.array(atoms, np.int64).reshape([len(atoms), width])


class HarmonicDictionary(Dictionary):
    """The spherical harmonics of which the kernel has a positive eigenvalue: chains of degrees."""

    def __init__(self, harmonics: SphericalHarmonics, kernel: ZonalKernel) -> None:
        self._harmonics, self._kernel = harmonics, kernel

    @property
    def atoms(self) -> IntArray:
        return self._harmonics.chains

    def arranged(self, X: Array) -> Dictionary:
        """With the columns that matter least first; of whole degrees, which span the same then."""
        degrees = self._harmonics.degrees
        whole = [num_harmonics(self._harmonics.dimension, degree) for degree in degrees]
        if list(self._harmonics.multiplicities) != whole:
            return self
        order = columns_by_scale(*self._lifted(X))
        harmonics = SphericalHarmonics(self._harmonics.dimension, degrees, column_order=order)
        return HarmonicDictionary(harmonics, self._kernel)

    def likeliest(self, X: Array, count: int) -> IntArray:
        unit, weights = self._lifted(X)
        order = [*self._harmonics.column_order, self._harmonics.dimension - 1]
        return grown_chains(self._kernel, unit[:, order], weights, count, None)

    def _lifted(self, X: Array) -> tuple[Array, Array]:
        return lifted_rows(self._kernel, sampled_rows(X))

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """Across up to two degrees of which the kernel has none; beyond, it ends."""
        highest = int(degrees_of(atoms).max()) + 1 + _LONGEST_GAP
        carried = np.array(self._degrees_up_to(highest))
        # For each degree, how far it is to the next one that the kernel has.
        steps = [min(carried[carried >= k] - k, default=highest) for k in range(highest + 1)]
        seen, found = set(map(tuple, atoms.tolist())), []
        for atom in atoms:
            around = neighbours_of(atom[None])
            while len(around):
                new = [chain for chain in map(tuple, around.tolist()) if chain not in seen]
                seen.update(new)
                found += [chain for chain in new if steps[abs(chain[-1])] == 0]
                across = [chain for chain in new if 0 < steps[abs(chain[-1])] <= _LONGEST_GAP]
                around = neighbours_of(_rows(across, atoms.shape[1]))
            if limit is not None and len(found) >= limit:
                break
        return _rows(found, atoms.shape[1])[:limit]

    def _degrees_up_to(self, highest: int) -> list[int]:
        degrees = self._kernel.nonzero_degrees(self._harmonics.dimension, highest)
        values = self._kernel.eigenvalues(self._harmonics.dimension, degrees)
        least = least_eigenvalue(values.dtype)
        return [d for d, value in zip(degrees, values.numpy(), strict=True) if value >= least]

    def block(self, atoms: IntArray, *, alone: bool = False) -> Block:
        harmonics = SphericalHarmonics(
            self._harmonics.dimension, chains=atoms, column_order=self._harmonics.column_order
        )
        return harmonics, self._kernel

    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        return np.arange(len(atoms))


@dictionary.register(SphericalHarmonics, ZonalKernel)
def dictionary_harmonics(harmonics: SphericalHarmonics, kernel: ZonalKernel) -> Dictionary:
    """Chains of degrees."""
    return HarmonicDictionary(harmonics, kernel)


class WaveDictionary(Dictionary):
    """The waves of a box: integer frequencies, of up to ``2^D`` features each."""

    def __init__(self, features: PeriodicFourierFeatures, kernel: Periodized) -> None:
        self._features, self._kernel = features, kernel

    @property
    def atoms(self) -> IntArray:
        return self._features.frequencies

    def arranged(self, X: Array) -> Dictionary:
        return self

    def likeliest(self, X: Array, count: int) -> IntArray:
        """The same for all rows of the box."""
        frequencies = self._kernel.largest_frequencies(count)
        whole = np.prod(self._kernel.periods) * float(self._kernel.total_variance())
        shares = np.asarray(self._kernel.spectral_density(frequencies), float) / whole
        notable: IntArray = frequencies[shares >= NEGLIGIBLE_SHARE]
        return notable

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        steps = np.eye(atoms.shape[1], dtype=np.int64)
        seen = set(map(tuple, atoms.tolist()))
        around = (atoms[:, None] + steps).reshape([-1, atoms.shape[1]])
        found = [row for row in dict.fromkeys(map(tuple, around.tolist())) if row not in seen]
        return _rows(found, atoms.shape[1])[:limit]

    def block(self, atoms: IntArray, *, alone: bool = False) -> Block:
        features = PeriodicFourierFeatures(self._features.lower, self._features.upper, atoms)
        return features, self._kernel

    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        features, _ = self.block(atoms)
        rows = {frequency: row for row, frequency in enumerate(map(tuple, atoms.tolist()))}
        frequencies = frequencies_of(features.functions)
        return np.array([rows[tuple(frequency)] for frequency in frequencies.tolist()])


@dictionary.register(PeriodicFourierFeatures, Periodized)
def dictionary_waves(features: PeriodicFourierFeatures, kernel: Periodized) -> Dictionary:
    """Frequencies."""
    return WaveDictionary(features, kernel)


class SumDictionary(Dictionary):
    """The dictionaries of a sum's blocks side by side; blocks without one stay as they are.

    An atom is the number of its block, and its own integers with zeros behind.
    """

    def __init__(
        self,
        blocks: Sequence[InducingVariables | None],
        kernel: Sum | DecomposedKernel,
        summands: Sequence[Kernel],
        parts: Mapping[int, Dictionary],
    ) -> None:
        # Some kernels make their summands anew whenever they are asked; these are kept.
        self._blocks, self._kernel, self._summands = blocks, kernel, summands
        self._parts = parts
        self._widths = {number: part.atoms.shape[1] for number, part in parts.items()}

    @property
    def atoms(self) -> IntArray:
        return self._joined({number: part.atoms for number, part in self._parts.items()})

    def arranged(self, X: Array) -> Dictionary:
        parts = {number: part.arranged(X) for number, part in self._parts.items()}
        return SumDictionary(self._blocks, self._kernel, self._summands, parts)

    def likeliest(self, X: Array, count: int) -> IntArray:
        """The same number of each block, in turn."""
        count = self._share(count)
        parts = {number: part.likeliest(X, count) for number, part in self._parts.items()}
        places = np.concatenate([np.arange(len(atoms)) for _, atoms in sorted(parts.items())])
        return self._joined(parts)[np.argsort(places, kind="stable")]

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """With a limit, the same number of each block."""
        limit = None if limit is None else self._share(limit)
        return self._joined(
            {
                number: part.neighbours(self._of(number, atoms), limit)
                for number, part in self._parts.items()
            }
        )

    def _share(self, count: int) -> int:
        return -(-count // len(self._parts))

    def block(self, atoms: IntArray, *, alone: bool = False) -> Block:
        blocks = [None if alone else block for block in self._blocks]
        kernels = list(self._summands)
        for number, part in self._parts.items():
            own = self._of(number, atoms)
            if len(own):
                blocks[number], kernels[number] = part.block(own, alone=alone)
        same = all(map(operator.is_, kernels, self._summands))
        return SumInducingVariables(blocks), self._kernel if same else Sum(kernels)

    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        rows = []
        for number, block in enumerate(self._blocks):
            own = np.flatnonzero(atoms[:, 0] == number)
            if len(own):
                rows.append(own[self._parts[number].owners(self._of(number, atoms), alone=alone)])
            elif block is not None and not alone:
                rows.append(np.full(int(block.num_inducing), -1))
        return np.concatenate(rows)

    def charged(self, atoms: IntArray) -> BoolArray:
        parts = [
            part.charged(self._of(number, atoms))
            for number, part in sorted(self._parts.items())
            if np.any(atoms[:, 0] == number)
        ]
        return np.concatenate(parts)

    def _joined(self, parts: Mapping[int, IntArray]) -> IntArray:
        width = max(self._widths.values())
        rows = []
        for number, atoms in sorted(parts.items()):
            padding = np.zeros((len(atoms), width - atoms.shape[1]), np.int64)
            labels = np.full((len(atoms), 1), number)
            rows.append(np.concatenate([labels, atoms, padding], axis=1))
        return np.concatenate(rows)

    def _of(self, number: int, atoms: IntArray) -> IntArray:
        return atoms[atoms[:, 0] == number, 1 : 1 + self._widths[number]]


@dictionary.register(SumInducingVariables, (Sum, DecomposedKernel))
def dictionary_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel
) -> Dictionary | None:
    """Those of the blocks, unless none has one."""
    blocks, summands = inducing_variable.inducing_variables, list(kernel.kernels)
    parts = {
        number: found
        for number, (block, summand) in enumerate(zip(blocks, summands, strict=True))
        if block is not None and (found := dictionary(block, summand)) is not None
    }
    return SumDictionary(blocks, kernel, summands, parts) if parts else None


class FiniteRankDictionary(Dictionary):
    """The dictionary of a kernel of which the features are the whole prior."""

    def __init__(self, base: Dictionary) -> None:
        self._base = base

    @property
    def atoms(self) -> IntArray:
        return self._base.atoms

    def arranged(self, X: Array) -> Dictionary:
        return FiniteRankDictionary(self._base.arranged(X))

    def likeliest(self, X: Array, count: int) -> IntArray:
        return self._base.likeliest(X, count)

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        return self._base.neighbours(atoms, limit)

    def block(self, atoms: IntArray, *, alone: bool = False) -> Block:
        features, kernel = self._base.block(atoms, alone=alone)
        return features, kernel if alone else FiniteRank(kernel, features)

    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        return self._base.owners(atoms, alone=alone)

    def charged(self, atoms: IntArray) -> BoolArray:
        return np.zeros_like(self._base.charged(atoms))


@dictionary.register(InducingVariables, FiniteRank)
def dictionary_finite_rank(
    inducing_variable: InducingVariables, kernel: FiniteRank
) -> Dictionary | None:
    """That of the base kernel; the prior grows with the features."""
    base = dictionary(inducing_variable, kernel.kernel)
    return None if base is None else FiniteRankDictionary(base)
