"""The spherical harmonics as an orthogonal dictionary, whose atoms are chains of degrees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..._arguments import Array, IntArray
from ...core.dictionaries import Dictionary, rows_of
from ...core.family import Block
from .growth import Spectrum, columns_by_scale, grown_chains
from .kernel import ZonalKernel
from .mathematics.dimensions import neighbours_of, num_harmonics


@dataclass(frozen=True, eq=False)
class HarmonicDictionary(Dictionary):
    """The spherical harmonics of which the kernel has a positive eigenvalue: chains of degrees.

    :ivar harmonics: SphericalHarmonics, whose file imports this one.
    """

    harmonics: Any
    kernel: ZonalKernel

    @property
    def atoms(self) -> IntArray:
        chains: IntArray = self.harmonics.chains
        return chains

    def arranged(self, X: Array) -> Dictionary:
        """With the columns that matter least first; of whole degrees, which span the same then."""
        dimension, degrees = self.harmonics.dimension, self.harmonics.degrees
        numbers = [num_harmonics(dimension, degree) for degree in degrees]
        if list(self.harmonics.multiplicities) != numbers:
            return self
        order = columns_by_scale(self.kernel, X)
        harmonics = type(self.harmonics)(dimension, degrees, column_order=order)
        return replace(self, harmonics=harmonics)

    def likeliest(self, X: Array, count: int) -> IntArray:
        return grown_chains(self.kernel, X, self.harmonics.column_order, count)

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """Across degrees that the kernel lacks; those with too small an eigenvalue are none."""
        spectrum = Spectrum(self.kernel, self.harmonics.dimension, None)
        seen, near = set(map(tuple, atoms.tolist())), list[tuple[int, ...]]()
        for atom in atoms:
            around = neighbours_of(atom[None])
            while len(around):
                reached = dict.fromkeys(map(tuple, around.tolist()))
                new = [chain for chain in reached if chain not in seen]
                seen.update(new)
                new = [chain for chain in new if spectrum.from_degree(abs(chain[-1])) > 0]
                near += [chain for chain in new if spectrum.has_degree(abs(chain[-1]))]
                across = [chain for chain in new if not spectrum.has_degree(abs(chain[-1]))]
                around = neighbours_of(rows_of(across, atoms.shape[1]))
            if limit is not None and len(near) >= limit:
                break
        return rows_of(near, atoms.shape[1])[:limit]

    def features(self, atoms: IntArray) -> Block:
        dimension, order = self.harmonics.dimension, self.harmonics.column_order
        return type(self.harmonics)(dimension, chains=atoms, column_order=order), self.kernel
