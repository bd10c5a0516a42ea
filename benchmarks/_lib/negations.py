"""Negations of groups of columns, or of groups of principal directions."""

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


def principal_negations(components: int, seed: int, *, columns: int) -> Any:
    """The negations of principal directions of random data that decompose a kernel into
    `components` components.

    :raises ValueError: if `components` is not a power of two.
    """
    import interdomain as idm

    groups = components.bit_length() - 1
    if 2**groups != components:
        raise ValueError(f"components must be a power of two, found {components}")
    return idm.transforms.PrincipalNegation.from_data(
        np.random.default_rng(seed + 2).normal(size=(1_000, columns)), groups
    )
