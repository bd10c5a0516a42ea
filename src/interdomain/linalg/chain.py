"""Block-banded matrices along a chain of nodes, with a border: precisions of space and time.

The weights of N nodes in a row, such as splines of time, are coupled if they are at most p nodes
apart. A node has g independent copies of m weights, such as features of space. The matrix is

    P = [[A, C], [C^T, D]],

where the *blocks* ``[N, p + 1, g, m, m]`` are the entries of A, of node i (rows) with node i - d
(columns), and D belongs to E further weights. Several nodes are eliminated in one step, by LAPACK
and products of matrices. This takes ``O(N p^2 g m^3)`` operations. Entries of the inverse at the
places of A's entries follow from the last step to the first (Takahashi, Fagan and Chen 1973).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from .._arguments import Array
from .chain_steps import both_sides, eliminate, inverse_of_last, inverse_of_step
from .operators import Factor
from .stencil_factors import NotFactorised

_LEAST_SIZE = 32, 8
"""The least numbers of rows of a step, for one copy and for several: smaller steps are slower."""


class Chain(NamedTuple):
    """The sizes of a block-banded matrix.

    :ivar nodes: N.
    :ivar reach: p, 1 or more.
    :ivar copies: g.
    :ivar width: m.
    :ivar others: E.
    """

    nodes: int
    reach: int
    copies: int
    width: int
    others: int = 0

    @property
    def num_weights(self) -> int:
        """The number of weights of the nodes, ``N g m``."""
        return self.nodes * self.copies * self.width

    @property
    def band_shape(self) -> tuple[int, ...]:
        """The shape of the diagonals of all blocks, ``[N, p + 1, g, m]``."""
        return self.nodes, self.reach + 1, self.copies, self.width

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of blocks, border C ``[N g m, E]`` and corner D ``[E, E]``."""
        border = self.num_weights, self.others
        return (*self.band_shape, self.width), border, (self.others, self.others)

    @property
    def entries(self) -> int:
        """The count of numbers of the matrix."""
        return int(sum(np.prod(shape) for shape in self.shapes))

    @property
    def nodes_of_step(self) -> int:
        """The number of nodes that are eliminated in a step."""
        least = _LEAST_SIZE[self.copies > 1]
        return min(max(self.reach, -(-least // self.width)), max(self.nodes, self.reach))

    @property
    def steps(self) -> int:
        """The number of steps."""
        return -(-self.nodes // self.nodes_of_step)

    def by_step(self, columns: Array) -> Array:
        """Columns ``[N g m, K]`` as ``[steps, g, r m, K]`` for r nodes in a step, with zeros for
        missing nodes."""
        r, count = self.nodes_of_step, columns.shape[1]
        filled = np.zeros([self.steps * r, self.copies, self.width, count])
        filled[: self.nodes] = columns.reshape(self.nodes, self.copies, self.width, count)
        steps = filled.reshape(self.steps, r, self.copies, self.width, count).swapaxes(1, 2)
        return steps.reshape(self.steps, self.copies, r * self.width, count)

    def by_node(self, steps: Array) -> Array:
        """The columns ``[N g m, K]`` of the result of :meth:`by_step`."""
        r, count = self.nodes_of_step, steps.shape[-1]
        nodes = steps.reshape(self.steps, self.copies, r, self.width, count).swapaxes(1, 2)
        nodes = nodes.reshape(self.steps * r, self.copies, self.width, count)
        return nodes[: self.nodes].reshape(self.num_weights, count)

    def rows_of(self, step: int) -> Iterator[tuple[int, int, int]]:
        """The blocks in the rows of a step: the node, d, and the number of the node in its step."""
        r = self.nodes_of_step
        for row in range(min(r, self.nodes - step * r)):
            node = step * r + row
            for d in range(min(self.reach, node) + 1):
                yield node, d, row

    def band_of_products(self, columns: Array) -> Array:
        """The diagonals of the blocks of ``X X^T`` for X ``[N g m, K]``, in the shape of
        :attr:`band_shape`."""
        band = np.zeros(self.band_shape)
        values = columns.reshape(self.nodes, self.copies, self.width, columns.shape[1])
        for d in range(min(self.reach + 1, self.nodes)):
            band[d:, d] = np.sum(values[d:] * values[: self.nodes - d], axis=-1)
        return band

    def matmul(self, blocks: Array, columns: Array) -> Array:
        """The product of A with columns ``[N g m, K]``."""
        values = columns.reshape(self.nodes, self.copies, self.width, columns.shape[1])
        product = blocks[:, 0] @ values
        for d in range(1, min(self.reach + 1, self.nodes)):
            product[d:] += blocks[d:, d] @ values[:-d]
            product[:-d] += blocks[d:, d].swapaxes(-1, -2) @ values[d:]
        return product.reshape(columns.shape)

    def dense(self, blocks: Array) -> Array:
        """A as a dense matrix, for few weights."""
        return self.matmul(blocks, np.eye(self.num_weights))


class ChainFactor(Factor):
    """The factor L of ``P = L L^T``.

    The blocks of P are ``scale`` times ``W G W^T`` for a matrix W, plus the band on their
    diagonals. The border and the corner are used as they are.

    :param chain: The sizes.
    :param band: The diagonals that are added to the blocks, ``[N, p + 1, g, m]``.
    :param corner: D, ``[E, E]``.
    :param blocks: G, ``[N, p + 1, g, m, m]``. They are not copied.
    :param border: ``[N g m, E]``.
    :param matrix: W, ``[m, m]``; None for the identity.
    :raises NotFactorised: If P is not positive definite.
    """

    def __init__(
        self,
        chain: Chain,
        band: Array,
        corner: Array,
        blocks: Array,
        border: Array,
        scale: float = 1.0,
        matrix: Array | None = None,
    ) -> None:
        self.chain, self.size = chain, chain.num_weights + chain.others
        size = chain.nodes_of_step * chain.width
        self._inverses = np.empty([chain.steps, chain.copies, size, size])
        self._sides = np.empty([max(chain.steps - 1, 1), chain.copies, size, size])
        inverse = None
        for step in range(chain.steps):
            own, side = self._inverses[step], self._sides[max(step - 1, 0)]
            self._assemble(step, own, side, band, blocks, scale, matrix)
            eliminate(own, side, inverse)
            inverse = own
        half = self._solve_nodes(border)
        self._solved = self._solve_nodes(half, adjoint=True)
        try:
            self._triangle = cholesky(corner - half.T @ half, lower=True)
        except (np.linalg.LinAlgError, ValueError):  # SciPy raises ValueError for NaN
            raise NotFactorised from None

    def _assemble(
        self,
        step: int,
        own: Array,
        side: Array,
        band: Array,
        blocks: Array,
        scale: float,
        matrix: Array | None,
    ) -> None:
        """Fill the matrices of a step with itself (its lower half), and with the step before, ``[g,
        r m, r m]``."""
        chain = self.chain
        r, m = chain.nodes_of_step, chain.width
        for part in (own, side):
            part.fill(0.0)
        stack = blocks[step * r : (step + 1) * r]
        if matrix is not None:
            stack = both_sides(matrix, stack)
        own, side = (part.reshape(-1, r, m, r, m) for part in (own, side))
        places = np.arange(m)
        for node, d, row in chain.rows_of(step):
            part, column = (own, row - d) if d <= row else (side, row - d + r)
            np.multiply(stack[row, d], scale, out=part[:, row, :, column])
            part[:, row, places, column, places] += band[node, d]
        for row in range(chain.nodes - step * r, r):  # nodes beyond the last
            own[:, row, places, row, places] = 1.0

    def log_determinant(self) -> float:
        diagonals = np.diagonal(self._inverses, axis1=2, axis2=3)
        return float(np.sum(np.log(np.diagonal(self._triangle))) - np.sum(np.log(diagonals)))

    def solve(self, columns: Array, *, adjoint: bool = False) -> Array:
        nodes, others = np.split(columns, [self.chain.num_weights])
        if adjoint:
            others = solve_triangular(self._triangle, others, lower=True, trans="T")
            nodes = self._solve_nodes(nodes, adjoint=True) - self._solved @ others
        else:
            rest = others - self._solved.T @ nodes
            others = solve_triangular(self._triangle, rest, lower=True)
            nodes = self._solve_nodes(nodes)
        return np.concatenate([nodes, others])

    def _solve_nodes(self, columns: Array, *, adjoint: bool = False) -> Array:
        """The solution for the weights of the nodes alone."""
        values, last = self.chain.by_step(columns), self.chain.steps - 1
        if adjoint:
            for step in range(last, -1, -1):
                if step < last:
                    values[step] -= self._sides[step].swapaxes(1, 2) @ values[step + 1]
                values[step] = self._inverses[step].swapaxes(1, 2) @ values[step]
        else:
            for step in range(last + 1):
                if step:
                    values[step] -= self._sides[step - 1] @ values[step - 1]
                values[step] = self._inverses[step] @ values[step]
        return self.chain.by_node(values)

    def _inverse_by_step(self) -> Iterator[tuple[int, Array, Array | None]]:
        """The inverse of A within the band, from the last step to the first: the step, its entries
        with itself (their lower half), and with the step before (None for the first), ``[g, r m, r
        m]`` each."""
        last = self.chain.steps - 1
        own = inverse_of_last(self._inverses[last])
        for step in range(last - 1, -1, -1):
            before, across = inverse_of_step(self._inverses[step], self._sides[step], own)
            yield step + 1, own, across
            own = before
        yield 0, own, None

    def inverse_stacks(self) -> Iterator[tuple[slice, Array]]:
        """The entries of the inverse at the places of the blocks, for the nodes of each step, from
        the last step to the first: the nodes, and blocks ``[r, p + 1, g, m, m]``."""
        chain = self.chain
        r, m = chain.nodes_of_step, chain.width
        root = solve_triangular(self._triangle, self._solved.T, lower=True).T
        roots = root.reshape(chain.nodes, chain.copies, m, chain.others)
        for step, own, side in self._inverse_by_step():
            nodes = slice(step * r, min((step + 1) * r, chain.nodes))
            stack = np.zeros([nodes.stop - nodes.start, *chain.shapes[0][1:]])
            for node, d, row in chain.rows_of(step):
                part, column = (own, row - d) if d <= row else (side, row - d + r)
                assert part is not None
                block = part.reshape(-1, r, m, r, m)[:, row, :, column]
                if d == 0:  # of which the lower half is known
                    block = np.tril(block) + np.tril(block, -1).swapaxes(1, 2)
                if chain.others:
                    block = block + roots[node] @ roots[node - d].swapaxes(1, 2)
                stack[row, d] = block
            yield nodes, stack

    def inverse_blocks(self) -> Array:
        """The entries of the inverse at the places of the blocks, ``[N, p + 1, g, m, m]``."""
        blocks = np.empty(self.chain.shapes[0])
        for nodes, stack in self.inverse_stacks():
            blocks[nodes] = stack
        return blocks

    def inverse_band(self) -> Array:
        """The diagonals of :meth:`inverse_blocks`, ``[N, p + 1, g, m]``, in little memory."""
        band = np.empty(self.chain.band_shape)
        for nodes, stack in self.inverse_stacks():
            band[nodes] = np.diagonal(stack, axis1=3, axis2=4)
        return band

    def inverse_border(self) -> tuple[Array, Array]:
        """The border ``[N g m, E]`` and the corner ``[E, E]`` of the inverse."""
        corner: Array = cho_solve((self._triangle, True), np.eye(len(self._triangle)))
        return -self._solved @ corner, corner

    def inverse_diagonal(self) -> Array:
        nodes, corner = self.inverse_band()[:, 0].ravel(), self.inverse_border()[1]
        return np.concatenate([nodes, np.diagonal(corner)])
