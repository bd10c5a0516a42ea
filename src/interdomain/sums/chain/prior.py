"""The prior of the weights of space and time."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import tensorflow as tf

from ...core.family import Block
from ...core.pairs import Kuu_operator
from ...linalg import StructuredOperator
from ...linalg.block_diagonal import block_diagonal
from ...linalg.chain import Chain
from ...linalg.full import Full
from .terms import ChainTerm


class ChainPrior:
    """The prior of the weights of whitened features: those of all terms, and of other blocks.

    :ivar terms: The terms.
    :ivar chain: The sizes of the matrices.
    """

    terms: Sequence[ChainTerm]
    chain: Chain
    _others: Sequence[Block]

    def band(self, *, inverse: bool = False) -> tf.Tensor:
        """The prior precision of whitened weights (or its inverse) within the band, whose blocks
        are diagonal: ``[N, p + 1, g, m]``."""
        reach, bands = self.chain.reach, []
        for term in self.terms:
            of_time = term.inverse_band(reach) if inverse else term.band(reach)
            of_space = 1 / term.precisions() if inverse else term.precisions()
            bands.append(of_time[:, :, None, None] * of_space)
        return tf.concat(bands, axis=3)

    def whitening(self, *, of_Kuf: bool = False) -> tf.Tensor | None:
        """The matrix that whitens features of space, in the basis of the sums or of Kuf, ``[m,
        m]``; None for the identity."""
        return self._joined([term.whitening(of_Kuf=of_Kuf) for term in self.terms])

    def from_raw(self) -> tf.Tensor | None:
        """The matrix that maps features of space in the basis of the sums to those of Kuf, ``[m,
        m]``; None for the identity."""
        return self._joined([term.from_raw() for term in self.terms])

    def _joined(self, matrices: Sequence[tf.Tensor | None]) -> tf.Tensor | None:
        if all(matrix is None for matrix in matrices):
            return None
        filled = [
            tf.eye(term.width, dtype=tf.float64) if matrix is None else matrix
            for term, matrix in zip(self.terms, matrices, strict=True)
        ]
        operators = [tf.linalg.LinearOperatorFullMatrix(matrix) for matrix in filled]
        return tf.linalg.LinearOperatorBlockDiag(operators).to_dense()

    def log_determinant(self) -> tf.Tensor:
        """The log determinant of the prior precision of the whitened weights of all terms."""
        return tf.add_n([term.log_determinant() for term in self.terms])

    def Kuu_of_others(self) -> StructuredOperator:
        """Kuu of the features without splines of time, in float64."""
        jitter = gpflow.config.default_jitter()
        others = [Kuu_operator(*block, jitter=jitter) for block in self._others]
        if not others:
            return Full(tf.zeros([0, 0], tf.float64))
        return block_diagonal([part.cast(tf.float64) for part in others])
