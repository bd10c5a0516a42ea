"""Linear algebra on the structure of covariance matrices, without GPflow.

A covariance matrix is a ``tf.linalg.LinearOperator`` with the methods of
:class:`StructuredOperator`. Each structure is one class in one file: ``diagonal``, ``full``,
``low_rank``, ``block_diagonal``, ``banded``, ``bordered``. Sums over rows are
``operators.Summable``: dense matrices, tables of waves (``wave_tables``), and sparse matrices of
splines on a grid (``spline_grid``), factorised by ``dissection``; ``arrow`` adds a few dense rows
to them. ``chain`` factorises sums of splines of time and features of space, block by block.

``variational`` has the algebra of q(u), and ``projections`` its large products. ``precision`` has
the optimal q of regression, by LAPACK (``lapack``), and ``natural_gradients`` steps towards it.
``chunks`` computes functions of many rows, a few rows at a time. ``radial_terms`` has functions of
a squared distance, and ``radial_sums`` their weighted sums over groups of points.
"""

from .block_diagonal import BlockDiagonal
from .diagonal import Diagonal
from .full import Full
from .low_rank import LowRankUpdate
from .operators import Root, StructuredOperator

__all__ = [
    "BlockDiagonal",
    "Diagonal",
    "Full",
    "LowRankUpdate",
    "Root",
    "StructuredOperator",
]
