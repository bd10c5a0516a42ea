"""Linear algebra on the structure of covariance matrices, without GPflow.

A covariance matrix is a ``tf.linalg.LinearOperator`` with the methods of
:class:`StructuredOperator`. Each structure has one file (``diagonal``, ``full``, ``low_rank``,
``block_diagonal``, ``banded``); a new one is a new class. Sums over rows have the same verbs and
add up (``operators.Summable``): dense ones, tables of waves (``wave_tables``), and sparse matrices
of splines on a grid (``spline_grid``, factorised by ``dissection``) with a few dense rows
(``arrow``). On top of these, ``variational`` has the algebra of q(u) (``projections`` its large
products), ``precision`` that of the optimal q of regression, by LAPACK (``lapack``), and
``natural_gradients`` steps towards it. Other modules compute sums that
several families need: ``chunks`` (functions of many rows, a few rows at a time), ``radial_terms``
and ``radial_sums`` (functions of a squared distance, and weighted sums of them over groups of
points).
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
