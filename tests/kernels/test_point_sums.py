"""Sums of a kernel over groups of points, a few at a time, against all kernel values at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Kernel, Matern32, RationalQuadratic, SquaredExponential

from interdomain.kernels import ChannelAdditive
from interdomain.kernels._point_sums import cross_sums, double_sums, quadratic_sums
from interdomain.kernels._radial_forms import radial_terms
from interdomain.linalg import chunks
from tests.conformance.helpers import assert_same_results

RNG = np.random.default_rng(0)
Z, POINTS, POINTS2 = (RNG.normal(size=shape) for shape in ((5, 3), (3, 4, 3), (2, 3, 3)))
WEIGHTS, WEIGHTS2 = RNG.normal(size=4), RNG.normal(size=3)

KERNELS: dict[str, Callable[[], Kernel]] = {
    "no closed form": lambda: RationalQuadratic(1.3, [0.7, 1.1, 0.9]),
    "closed forms": lambda: (
        Matern32(1.3, [0.7, 1.1], active_dims=[2, 0]) + SquaredExponential(0.6, 0.9)
    ),
}


def all_at_once(kernel: Kernel, *arguments: tf.Tensor) -> list[tf.Tensor]:
    Z, points, points2, weights, weights2 = arguments
    flat, flat2 = tf.reshape(points, [12, 3]), tf.reshape(points2, [6, 3])
    cross = tf.reshape(kernel(Z, flat), [5, 3, 4])
    double = tf.reshape(kernel(flat, flat2), [3, 4, 2, 3])
    return [
        tf.linalg.matvec(cross, weights),
        tf.einsum("npmq,p,q->nm", double, weights, weights2),
        tf.einsum("npq,p,q->n", kernel(points), weights, weights),
    ]


def in_parts(kernel: Kernel, *arguments: tf.Tensor) -> list[tf.Tensor]:
    Z, points, points2, weights, weights2 = arguments
    return [
        cross_sums(kernel, Z, points, weights),
        double_sums(kernel, points, points2, weights, weights2),
        quadratic_sums(kernel, points, weights),
    ]


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("entries", [2**18, 24, 1])
def test_values_and_gradients(name: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 24 entries some groups at a time; with one, of which a group may take eight,
    also some points of a group, and some of Z."""
    monkeypatch.setattr(chunks, "CHUNK_ENTRIES", entries)
    kernel = KERNELS[name]()
    assert (radial_terms(kernel) is None) == (name == "no closed form")
    arguments = [tf.constant(value) for value in (Z, POINTS, POINTS2, WEIGHTS, WEIGHTS2)]
    assert_same_results(
        lambda: in_parts(kernel, *arguments),
        lambda: all_at_once(kernel, *arguments),
        [*arguments, *kernel.trainable_variables],
        rtol=1e-11,
    )


def test_a_part_without_a_closed_form() -> None:
    assert radial_terms(Matern32() + RationalQuadratic()) is None
    assert radial_terms(ChannelAdditive([Matern32(), RationalQuadratic()], (2, 2))) is None
