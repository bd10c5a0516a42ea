"""The dictionary of a sum: those of its blocks side by side."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from ..covariances.domains import BoolArray
from ..covariances.pairs import Block
from ..inducing_variables import SumInducingVariables
from ..kernels import DecomposedKernel
from ..sphere._typing import Array, IntArray
from .dictionaries import Dictionary, dictionary


@dataclass(frozen=True, eq=False)
class SumDictionary(Dictionary):
    """The dictionaries of a sum's blocks side by side; blocks without one stay as they are.

    An atom is the number of its block, and its own integers with zeros behind.

    :ivar summands: Of the kernel. Some kernels make these anew whenever they are asked; these are
        kept.
    :ivar parts: The dictionaries, by the number of their block, in increasing order.
    """

    blocks: Sequence[InducingVariables | None]
    kernel: Sum | DecomposedKernel
    summands: Sequence[Kernel]
    parts: Mapping[int, Dictionary]

    @property
    def atoms(self) -> IntArray:
        return self._joined({number: part.atoms for number, part in self.parts.items()})

    def arranged(self, X: Array) -> Dictionary:
        return replace(self, parts={n: part.arranged(X) for n, part in self.parts.items()})

    def likeliest(self, X: Array, count: int) -> IntArray:
        """The same number of each block, in turn."""
        count = self._share(count)
        parts = {number: part.likeliest(X, count) for number, part in self.parts.items()}
        places = np.concatenate([np.arange(len(atoms)) for atoms in parts.values()])
        return self._joined(parts)[np.argsort(places, kind="stable")]

    def neighbours(self, atoms: IntArray, limit: int | None = None) -> IntArray:
        """With a limit, the same number of each block."""
        each = None if limit is None else self._share(limit)
        return self._joined(
            {n: part.neighbours(self._of(n, atoms), each) for n, part in self.parts.items()}
        )

    def _share(self, count: int) -> int:
        return -(-count // len(self.parts))

    def features(self, atoms: IntArray, *, alone: bool) -> Block:
        blocks = [None if alone else block for block in self.blocks]
        kernels = list(self.summands)
        for number, part in self.parts.items():
            own = self._of(number, atoms)
            if len(own):
                blocks[number], kernels[number] = part.block(own, alone=alone)
        same = all(map(operator.is_, kernels, self.summands))
        return SumInducingVariables(blocks), self.kernel if same else Sum(kernels)

    def owners(self, atoms: IntArray, *, alone: bool = False) -> IntArray:
        rows = []
        for number, block in enumerate(self.blocks):
            own = np.flatnonzero(atoms[:, 0] == number)
            if len(own):
                rows.append(own[self.parts[number].owners(self._of(number, atoms), alone=alone)])
            elif block is not None and not alone:
                rows.append(np.full(int(block.num_inducing), -1))
        return np.concatenate(rows)

    def charged(self, atoms: IntArray) -> BoolArray:
        own = {number: self._of(number, atoms) for number in self.parts}
        charged = [self.parts[n].charged(some) for n, some in own.items() if len(some)]
        return np.concatenate(charged) & (not self.finite_rank)

    @functools.cached_property
    def _widths(self) -> dict[int, int]:
        """The number of integers of each block's own atoms."""
        return {number: part.atoms.shape[1] for number, part in self.parts.items()}

    def _joined(self, parts: Mapping[int, IntArray]) -> IntArray:
        width = max(self._widths.values())
        rows = [
            np.pad(atoms, [(0, 0), (1, width - atoms.shape[1])], constant_values=[(0, 0), (n, 0)])
            for n, atoms in parts.items()
        ]
        return np.concatenate(rows)

    def _of(self, number: int, atoms: IntArray) -> IntArray:
        return atoms[atoms[:, 0] == number, 1 : 1 + self._widths[number]]


@dictionary.register(SumInducingVariables, (Sum, DecomposedKernel))
def dictionary_sum(
    inducing_variable: SumInducingVariables, kernel: Sum | DecomposedKernel
) -> Dictionary | None:
    """The dictionaries of the blocks, unless none has one."""
    blocks, summands = inducing_variable.inducing_variables, list(kernel.kernels)
    parts = {
        number: found
        for number, (block, summand) in enumerate(zip(blocks, summands, strict=True))
        if block is not None and (found := dictionary(block, summand)) is not None
    }
    return SumDictionary(blocks, kernel, summands, parts) if parts else None
