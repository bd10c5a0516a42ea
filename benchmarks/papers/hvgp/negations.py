"""Negations of groups of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

import interdomain as idm
from benchmarks._lib.data import Array


def axis_negations(X: Array, num_groups: int, *, interleaved_about: Array | None = None) -> Any:
    """The negation of each of `num_groups` groups of columns: neighbouring columns, through their
    means; or, with a centre [D], every `num_groups`-th column, about it.

    `num_groups` groups decompose a kernel into 2^`num_groups` components.
    """
    columns = np.arange(X.shape[1])
    groups = np.array_split(columns, num_groups)
    centre = X.mean(axis=0)
    if interleaved_about is not None:
        groups = [columns[first::num_groups] for first in range(num_groups)]
        centre = interleaved_about
    return idm.transforms.Product(
        [idm.transforms.Negation(dims=group.tolist(), centre=centre[group]) for group in groups]
    )
