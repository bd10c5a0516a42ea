"""Chosen harmonics are those of whole degrees, and the labels that choose them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import eval_gegenbauer, roots_gegenbauer

from interdomain.families.sphere.mathematics.dimensions import chains_of_degrees
from interdomain.families.sphere.mathematics.harmonic_products import (
    chosen_harmonics,
)
from interdomain.families.sphere.mathematics.harmonics import spherical_harmonics
from interdomain.sphere import num_harmonics
from tests.families.sphere.mathematics.references import count_monomials_free_of_r2, unit_vectors

pytestmark = pytest.mark.usefixtures("eager")


@pytest.mark.parametrize(("dimension", "max_degree"), [(2, 9), (4, 6), (30, 2)])
def test_values_and_gradients_of_all_and_of_some(dimension: int, max_degree: int) -> None:
    """Some: in any order, and without those of lower degree that they are multiples of."""
    rng = np.random.default_rng(dimension)
    X, scale = tf.constant(unit_vectors(5, dimension)), tf.constant(rng.uniform(0.5, 2.0, size=5))
    chains = chains_of_degrees(dimension, range(max_degree + 1))
    for rows in (np.arange(len(chains)), rng.permutation(len(chains))[: len(chains) // 3]):
        weights, results = rng.normal(size=(len(rows), 5)), []
        for evaluate in (
            lambda rows=rows, **scale: chosen_harmonics(X, chains[rows], **scale),
            lambda rows=rows, **scale: tf.gather(
                spherical_harmonics(X, range(max_degree + 1), **scale), rows
            ),
        ):
            with tf.GradientTape() as tape:
                tape.watch((X, scale))
                total = tf.reduce_sum(weights * evaluate(scale=scale))
            results.append((evaluate(), total, *tape.gradient(total, (X, scale))))
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("dimension", "degree"), [(3, 40), (12, 4)])
def test_addition_theorem(dimension: int, degree: int) -> None:
    X = unit_vectors(8, dimension)
    Y = chosen_harmonics(X, chains_of_degrees(dimension, [degree])).numpy()
    half = dimension / 2 - 1
    cosines = np.clip(X @ X.T, -1, 1)
    legendre = eval_gegenbauer(degree, half, cosines) / eval_gegenbauer(degree, half, 1.0)
    count = num_harmonics(dimension, degree)
    np.testing.assert_allclose(Y.T @ Y / count, legendre, atol=1e-11)


def test_orthonormal_at_high_degree() -> None:
    """By Gauss quadrature, of some of 90,000 harmonics that are no multiples of each other."""
    degree = 30
    chains = np.array(
        [[0, 0, 0], [3, 7, 30], [-3, 7, 30], [0, 0, 30], [30, 30, 30], [-1, 29, 29], [3, 30, 30]]
    )
    angles = 2 * np.pi * np.arange(2 * degree + 1) / (2 * degree + 1)
    X, mass = np.stack([np.cos(angles), np.sin(angles)], axis=1), np.ones(len(angles))
    for dimension in (3, 4):
        t, weights = roots_gegenbauer(degree + 1, dimension / 2 - 1)
        rest = np.sqrt(1 - t**2)[:, None, None] * X
        heights = np.broadcast_to(t[:, None, None], [*rest.shape[:2], 1])
        X = np.concatenate([rest, heights], axis=2).reshape(-1, dimension)
        mass = np.outer(weights, mass).ravel()
    Y = chosen_harmonics(X, chains).numpy()
    gram = (Y * (mass / np.sum(mass))) @ Y.T
    np.testing.assert_allclose(gram, np.eye(len(chains)), atol=1e-11)


def test_num_harmonics_is_the_dimension_of_harmonic_polynomials() -> None:
    for dimension in range(2, 7):
        for degree in range(7):
            expected = count_monomials_free_of_r2(dimension, degree)
            assert num_harmonics(dimension, degree) == expected
    known = {(2, 60): 2, (3, 62): 125, (9, 4): 450, (20, 3): 1520}
    assert {case: num_harmonics(*case) for case in known} == known
