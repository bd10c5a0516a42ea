"""The features that a model can choose from: which are next, which are likeliest, and whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gpflow
import numpy as np

from interdomain.core.dictionaries import Dictionary
from interdomain.core.finite_rank import block_of
from interdomain.core.pairs import dictionary_of
from interdomain.covariances import Kuu_operator
from interdomain.families.sphere.mathematics.dimensions import chains_of_degrees
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    SphericalHarmonics,
    VariationalFourierFeatures,
)
from interdomain.kernels import (
    ArcCosine,
    FiniteRank,
    FreeSpectrum,
    Periodized,
    SphericalMatern52,
    ZonalKernel,
)

ROWS = np.random.default_rng(0).normal(size=[50, 2])
SCALES = np.array([1.0, 0.01])


def harmonics_of(kernel: ZonalKernel, max_degree: int) -> SphericalHarmonics:
    return SphericalHarmonics.for_kernel(kernel, 2, max_degree)


def box(base: gpflow.kernels.Kernel | None = None, columns: Sequence[int] = (0, 1)) -> Periodized:
    base = (
        gpflow.kernels.Matern32(lengthscales=[2.0, 1.0][: len(columns)]) if base is None else base
    )
    ends = np.zeros(len(columns)), np.full(len(columns), 4.0)
    kernel = Periodized(base, *ends)
    kernel.active_dims = columns
    return kernel


def found(features: Any, kernel: Any) -> Dictionary:
    dictionary = dictionary_of(features, kernel)
    assert dictionary is not None
    return dictionary


def rows_of(atoms: np.ndarray) -> list[list[int]]:
    return sorted(atoms.tolist())


def test_neighbours_of_harmonics_cross_degrees_that_the_kernel_lacks() -> None:
    """The arc-cosine kernel has degrees 0, 1, 2, 4, 6, ..."""
    own = found(harmonics_of(kernel := ArcCosine(), 2), kernel)
    whole = chains_of_degrees(3, (0, 1, 2))
    assert rows_of(own.neighbours(whole)) == rows_of(chains_of_degrees(3, [4]))
    # Not only where there is nothing nearer: (0, 2) is raised twice, across degree 3.
    some = np.array([[0, 0], [0, 1], [0, 2]])
    nearer = [[-1, 1], [-1, 2], [1, 1], [1, 2]]
    beyond = [[-2, 4], [-1, 4], [0, 4], [1, 4], [2, 4]]
    assert rows_of(own.neighbours(some)) == sorted(nearer + beyond)
    # Those of the first atom first.
    assert rows_of(own.neighbours(some[::-1], limit=5)) == beyond
    assert rows_of(own.neighbours(some, limit=2)) == [[-1, 1], [1, 1]]


def test_harmonics_end_with_the_kernel() -> None:
    kernel = FreeSpectrum([0.5])
    own = found(SphericalHarmonics(3, [0, 1]), kernel)
    assert own.neighbours(own.atoms).shape == (0, 2)
    assert len(own.neighbours(own.atoms[:2])) == 2


def test_arranged_harmonics_span_the_same() -> None:
    kernel = SphericalMatern52(weight_variances=SCALES)
    own = found(harmonics_of(kernel, 2), kernel)
    arranged, _ = block_of(own.arranged(ROWS), own.atoms)
    assert isinstance(arranged, SphericalHarmonics) and arranged.column_order == (1, 0)
    before = FiniteRank(kernel, harmonics_of(kernel, 2))(ROWS)
    np.testing.assert_allclose(FiniteRank(kernel, arranged)(ROWS), before, atol=1e-12)
    # Chosen ones do not, and stay.
    chosen = found(SphericalHarmonics(3, chains=[[0, 0], [0, 2]]), kernel)
    assert chosen.arranged(ROWS) is chosen


def test_likeliest_harmonics_come_first() -> None:
    kernel = SphericalMatern52(weight_variances=SCALES)
    own = found(harmonics_of(kernel, 1), kernel).arranged(ROWS)
    many = own.likeliest(ROWS, 40)
    np.testing.assert_array_equal(own.likeliest(ROWS, 7), many[:7])
    harmonics, _ = block_of(own, many)
    features = gpflow.covariances.Kuf(harmonics, kernel, ROWS).numpy()
    shares = np.mean(features**2, axis=1) / Kuu_operator(harmonics, kernel).diag_part().numpy()
    assert np.mean(shares[:10]) > 10 * np.mean(shares[-10:])


def test_waves() -> None:
    kernel = box()
    own = found(BoxFourierFeatures.for_kernel(kernel, 9), kernel)
    np.testing.assert_array_equal(own.atoms, kernel.largest_frequencies(9))
    atoms = np.array([[1, 2], [0, 0], [0, 3]])
    assert own.neighbours(atoms).tolist() == [[2, 2], [1, 3], [1, 0], [0, 1], [0, 4]]
    assert own.neighbours(atoms, limit=3).tolist() == [[2, 2], [1, 3], [1, 0]]
    features, same = block_of(own, atoms)
    assert same is kernel and isinstance(features, BoxFourierFeatures)
    owners = own.owners(atoms)
    assert np.bincount(owners).tolist() == [4, 1, 2]
    np.testing.assert_array_equal((features.functions + 1) // 2, atoms[owners])
    assert not own.finite_rank
    # Those without variance are not likely.
    kernel = box(gpflow.kernels.SquaredExponential(), [0])
    likeliest = found(BoxFourierFeatures.for_kernel(kernel, 5), kernel).likeliest(ROWS, 1_000)
    assert 4 < len(likeliest) < 20
    np.testing.assert_array_equal(likeliest[:, 0], np.arange(len(likeliest)))


def test_others_have_none() -> None:
    points = gpflow.inducing_variables.InducingPoints(ROWS[:3])
    matern = gpflow.kernels.Matern32()
    assert dictionary_of(points, matern) is None
    assert dictionary_of(points, FiniteRank(matern, points)) is None
    assert dictionary_of(VariationalFourierFeatures(0.0, 1.0, 3), matern) is None
