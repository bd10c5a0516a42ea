"""Linear algebra on the structure of covariance matrices, without GPflow.

A covariance matrix is a ``tf.linalg.LinearOperator``. Each kind of operator has one file
(``diagonal``, ``full``, ``low_rank``, ``block_diagonal``), which registers the functions of
``operators`` for it: a new kind of operator is a new file. On top of these, ``variational`` has the
algebra of q(u), ``precision`` that of the optimal q of regression, by LAPACK (``lapack``), and
``natural_gradients`` steps towards it. Other modules compute sums that several families need:
``chunks`` (functions of many rows, a few rows at a time), ``distances``, ``radial_terms`` and
``radial_sums`` (functions of a squared distance, and weighted sums of them over groups of points).
"""

from .block_diagonal import block_diagonal
from .diagonal import diagonal_operator
from .full import full_operator
from .low_rank import low_rank_operator
from .operators import Root, cast, square_root, stack, stack_alike, whiten

__all__ = [
    "Root",
    "block_diagonal",
    "cast",
    "diagonal_operator",
    "full_operator",
    "low_rank_operator",
    "square_root",
    "stack",
    "stack_alike",
    "whiten",
]
