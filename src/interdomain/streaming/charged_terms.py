"""The part of the prior variance that enters the bound: that of blocks whose features leave some.

The bound has the term ``tr Kff - tr Qff``. For a kernel of finite rank with all of its features the
two are the same, so that neither is needed.
"""

from __future__ import annotations

import numpy as np
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel, Sum

from ..covariances.domains import BoolArray
from ..covariances.finite_rank import is_whole
from ..inducing_variables.base import DecomposedInducingVariables
from ..kernels._diagonals import DiagonalTerm, diagonal_terms


def charged_terms(
    inducing_variable: InducingVariables, kernel: Kernel
) -> tuple[list[DiagonalTerm], BoolArray]:
    """The terms of the diagonal of a kernel, without those of blocks whose features represent all
    of it; and which features belong to the other blocks, ``[M]``."""
    is_sum = type(kernel) is Sum and isinstance(inducing_variable, DecomposedInducingVariables)
    if not is_sum:
        whole = is_whole(inducing_variable, kernel)
        terms = [] if whole else diagonal_terms(kernel)
        return terms, np.full(int(inducing_variable.num_inducing), not whole)
    terms, charged = [], []
    pairs = zip(inducing_variable.inducing_variables, kernel.kernels, strict=True)
    for block, summand in pairs:
        if block is None:
            terms += diagonal_terms(summand)
            continue
        of_block, is_charged = charged_terms(block, summand)
        terms += of_block
        charged.append(is_charged)
    return terms, np.concatenate(charged)
