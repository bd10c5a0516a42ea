"""Bad input to harmonizable kernels: what is said."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest

from interdomain.kernels import (
    HarmonizableComponent,
    HarmonizableMixture,
    LocallyStationaryGaussian,
)

TWO = [[0.1, 0.2], [0.3, -0.4]]
"""Two frequencies in two dimensions."""

ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"centre": [0.0]}, "centre must have 2 entries, found 1"),
    (
        {"amplitudes": [1.0]},
        r"amplitudes must be \[2\] or \[2, 2\], .* found shape \(1,\)",
    ),
    (
        {"amplitudes": [[1.0, 2.0], [2.0, 1.0]]},
        r"amplitudes must be positive semi-definite and not zero, .* pass for example W W\^H",
    ),
    ({"rank": 3}, "rank must be an integer from 1 to 2, found 3"),
    ({"lag": np.eye(3)}, r"lag must be a number, \[2\] or \[2, 2\], found shape \(3, 3\)"),
    ({"lag": [0.1, -0.2]}, "lag must be positive definite, found -0.2"),
    (
        {"envelope": [[0.5, 0.3], [0.3, 0.5]], "lag": [0.15, 0.19]},
        "lag must be above envelope / 4, .*; pass a larger lag or a smaller envelope",
    ),
]


def test_bad_components() -> None:
    for arguments, message in ERRORS:
        with pytest.raises(ValueError, match=message):
            HarmonizableComponent(**{"frequencies": TWO, **arguments})
    with pytest.raises(ValueError, match="variance must be positive, found 0.0"):
        LocallyStationaryGaussian(2, variance=0.0)


def test_bad_mixtures() -> None:
    component = HarmonizableComponent(TWO)
    message = r"must be HarmonizableComponent, found Matern32; add other kernels .* with \+"
    with pytest.raises(ValueError, match=message):
        HarmonizableMixture([component, gpflow.kernels.Matern32()])
    message = r"components must have equal numbers of columns, found \[1, 2\]"
    with pytest.raises(ValueError, match=message):
        HarmonizableMixture([component, HarmonizableComponent([[0.1]])])
    with pytest.raises(ValueError, match="X must have 2 columns, as frequencies have, found 3; pa"):
        component(np.zeros([4, 3]))
