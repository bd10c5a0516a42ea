"""Sums of space and time: products of splines of time and features of space, in a chain of blocks.

:mod:`.structure` is what the features declare, and :mod:`.blocks` finds it in a kernel. A
:mod:`term <.terms>` of a sum has the features of its products. The structure computes :mod:`sums
<.sums>` over :mod:`rows <.rows>`, from which follow :mod:`q <.q>` and its :mod:`posterior
<.posterior>`.
"""

__all__: list[str] = []
