"""The waves of a box as an orthogonal dictionary, whose atoms are frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..._arguments import Array, IntArray
from ...core.dictionaries import Dictionary, others_than
from ...core.family import Block
from .functions import frequencies_of, functions_of
from .periodized import Periodized

if TYPE_CHECKING:
    from .box_features import BoxFourierFeatures

NEGLIGIBLE_SHARE = 1e-12
"""Of the prior variance: waves with less are not taken."""


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
        total = np.prod(self.kernel.periods) * float(self.kernel.total_variance())
        shares = np.asarray(self.kernel.spectral_density(frequencies), float) / total
        notable: IntArray = frequencies[shares >= NEGLIGIBLE_SHARE]
        return notable

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """With one period more in one column."""
        width = atoms.shape[1]
        around = (atoms[:, None] + np.eye(width, dtype=np.int64)).reshape([-1, width])
        return others_than(atoms, around)[:limit]

    def features(self, atoms: IntArray) -> Block:
        return type(self.waves)(self.waves.lower, self.waves.upper, atoms), self.kernel

    def owners(self, atoms: IntArray) -> IntArray:
        rows = {frequency: row for row, frequency in enumerate(map(tuple, atoms.tolist()))}
        of_features = frequencies_of(functions_of(atoms))
        return np.array([rows[tuple(frequency)] for frequency in of_features.tolist()])
