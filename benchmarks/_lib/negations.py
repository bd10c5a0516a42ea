"""Negations of groups of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._lib.data import Array


def axis_negations(X: Array, num_groups: int) -> Any:
    """The negation of each of `num_groups` groups of neighbouring columns, through their means.

    `num_groups` groups decompose a kernel into 2^`num_groups` components.
    """
    import interdomain as idm

    centre = X.mean(axis=0)
    return idm.transforms.Product(
        [
            idm.transforms.Negation(dims=group.tolist(), centre=centre[group])
            for group in np.array_split(np.arange(X.shape[1]), num_groups)
        ]
    )
