"""The choice of the products of features that have the largest prior variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from .._arguments import Array, IntArray, check_size

_DIGITS = 12
"""The number of digits to which logarithms of variances are compared, to ignore rounding."""


def largest_products(variances: Sequence[Array], count: int) -> IntArray:
    """At most ``count`` products of the largest variance, as the numbers of a feature of each
    factor, ``[M, F]``. Products of equal variance are chosen together.

    :param variances: The prior variances of each factor's features.
    :raises ValueError: If ``count`` is less than the number of products of the largest variance.
    """
    total = math.prod(map(len, variances))
    check_size("inducing_variables", f"the prior variances of all {total:,} products", total)
    logs = [np.log(np.maximum(values, np.finfo(float).tiny)) for values in variances]
    joint = np.round(reduce(np.add.outer, logs), _DIGITS)
    order = np.argsort(-joint, axis=None, kind="stable")
    decreasing = joint.ravel()[order]
    # The products whose variance is larger than that of the first product left out.
    taken = int(np.searchsorted(-decreasing, -decreasing[count]))
    if not taken:
        equal = int(np.searchsorted(-decreasing, -decreasing[0], side="right"))
        raise ValueError(
            f"num_inducing must be at least {equal}, the number of products of the greatest "
            f"variance, which are alike, found {count}; pass {equal} or more."
        )
    return np.stack(np.unravel_index(order[:taken], joint.shape), axis=1)
