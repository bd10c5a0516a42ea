"""Every error names the argument, the value found, and what to pass instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.transforms import (
    CyclicTransform,
    ImageFlip,
    ImageRotation90,
    ImageTranslation,
    LongitudeShift,
    Negation,
    Orthogonal,
    Permutation,
    PrincipalNegation,
    Rotation,
    Translation,
)

DATA = np.random.default_rng(0).normal(size=(10, 3))
Errors = list[tuple[Callable[[], Any], str, str, str]]

# What is called, and parts of the message: argument and rule, value found, remedy.
ERRORS: Errors = [
    (lambda: Rotation(1), "order must be an integer from 2 to", "found 1", "pass how often"),
    (
        lambda: Negation([0, -1]),
        "dims must be different columns from 0",
        "found [0, -1]",
        "counted from the first",
    ),
    (lambda: Negation(0, np.nan), "centre must be finite", "found nan", "pass a finite"),
    (lambda: Translation(3, [0, 1], [1, -2]), "period must be positive", "-2.", "pass the length"),
    (
        lambda: LongitudeShift(3, coordinates="radians"),
        "coordinates must be 'degrees' or 'euclidean'",
        "found 'radians'",
        "pass 'degrees'",
    ),
    (lambda: Orthogonal(2 * np.eye(2)), "have orthonormal", "error of 3", "np.linalg.qr"),
    (lambda: Orthogonal(-np.eye(2), order=4), "not of order 4", "power 2 is", "pass order=2"),
    (
        lambda: Orthogonal([[0.6, -0.8], [0.8, 0.6]]),
        "matrix has no power up to 10000",
        "",
        "pass a matrix of finite order",
    ),
    (lambda: Permutation([0, 1, 2]), "is the identity", "Permutation([0, 1, 2])", "leave it out"),
    (
        lambda: PrincipalNegation.from_data(DATA, 4),
        "num_groups must be an integer from 1 to 3",
        "found 4",
        "a component of its own",
    ),
    (lambda: ImageFlip((4,), 0), "image_shape must be", "found (4,)", "pass (H, W) or (H, W, C)"),
    (lambda: ImageTranslation((3, 3), (3, 0)), "is the identity", "shift=(3, 0)", "leave it out"),
    (lambda: ImageRotation90((3, 4)), "must be square", "found (3, 4)", "cropped or padded"),
    (lambda: Negation()(tf.zeros([2, 2], tf.int32)), "X must be", "found int32", "pass tf.cast"),
    (lambda: Negation([0, 4]).probes(3, 2), "at least 5 columns", "input_dim=2", "pass X with"),
]


def test_errors() -> None:
    for call, rule, found, remedy in ERRORS:
        with pytest.raises(ValueError, match=re.escape(rule)) as error:
            call()
        assert found in str(error.value)
        assert remedy in str(error.value)


WRONG: list[tuple[CyclicTransform, int, str]] = [
    (LongitudeShift(3), 3, "2"),
    (Negation([0, 1]), 1, "at least 2"),
    (PrincipalNegation(np.eye(3)[:1], 0.0), 4, "3"),
]


def test_wrong_number_of_columns() -> None:
    for transform, columns, needed in WRONG:
        X = np.zeros((7, columns))
        for call in (transform, transform.orbit, lambda X, t=transform: t.power(X, 1)):
            with pytest.raises(ValueError, match=re.escape(repr(transform))) as error:
                call(X)
            found = f"{columns} (shape (7, {columns}))"
            message = f"X must have {needed} columns for {transform!r}, found {found}"
            assert message in str(error.value)
