"""SphericalHarmonics of single chains: chosen by the data, and as parts of whole degrees."""

from functools import partial

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import RBF

from interdomain.covariances import Kuu_operator, Kvu
from interdomain.families.sphere.growth import HarmonicSquares
from interdomain.families.sphere.mathematics.dimensions import raises_of
from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import (
    ArcCosine,
    SphericalMatern12,
    SphericalMatern32,
    SphericalMatern52,
    ZonalKernel,
)
from tests.conformance.helpers import assert_close, assert_refused, assert_same_objective

Chain = tuple[int, ...]
for_data = SphericalHarmonics.for_data


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + shape[-1]).normal(size=shape)


def by_enumeration(
    kernel: ZonalKernel, X: np.ndarray, order: tuple[int, ...], max_degree: int
) -> dict[Chain, float]:
    """The raises of all harmonics up to a degree, and their variances over all rows."""
    degrees = kernel.nonzero_degrees(X.shape[1] + 1, max_degree)
    whole = SphericalHarmonics(X.shape[1] + 1, degrees, column_order=order)
    means = np.mean(Kuf(whole, kernel, X).numpy() ** 2, axis=1)
    variances = means / Kuu_operator(whole, kernel).diag_part().numpy()
    raises = map(tuple, raises_of(whole.chains).tolist())
    return dict(zip(raises, variances.tolist(), strict=True))


def below(raises: Chain) -> set[Chain]:
    """All that are one raise below."""
    return {
        (*raises[:j], raises[j] - int(np.sign(raises[j])), *raises[j + 1 :])
        for j in np.flatnonzero(raises)
    }


def chosen(harmonics: SphericalHarmonics) -> set[Chain]:
    return set(map(tuple, raises_of(harmonics.chains).tolist()))


def test_the_largest_of_all() -> None:
    """Where they are closed under single raises, best first is just the best."""
    kernel = SphericalMatern52(weight_variances=[0.3, 2.0, 0.05], bias_variance=0.7, variance=3.0)
    X = normal(40, 3)
    harmonics = for_data(kernel, X, 60)
    assert harmonics.column_order == (2, 0, 1)
    variances = by_enumeration(kernel, X, harmonics.column_order, 10)
    largest = sorted(variances, key=lambda raises: -variances[raises])[:60]
    assert all(below(raises) <= set(largest) for raises in largest)
    assert chosen(harmonics) == set(largest)
    assert max(harmonics.degrees) >= 6


@pytest.mark.parametrize("order", [1, 0])
def test_degrees_that_the_kernel_lacks_are_crossed(order: int) -> None:
    """One by one, over everything that is enumerated: a second, naive search."""
    kernel, X = ArcCosine(order, weight_variances=[0.4, 1.5], bias_variance=0.2), normal(25, 2)
    harmonics = for_data(kernel, X, 20)
    variances = by_enumeration(kernel, X, harmonics.column_order, 12)
    known = SphericalHarmonics(3, range(13))
    lattice = set(map(tuple, raises_of(known.chains).tolist()))
    reached: set[Chain] = set()
    taken: set[Chain] = set()
    while len(taken) < 20:
        open_now = {r for r in lattice - reached if below(r) <= reached}
        lacking = open_now - set(variances)
        if lacking:
            reached |= lacking
        else:
            best = max(open_now, key=lambda raises: variances[raises])
            reached.add(best)
            taken.add(best)
    assert chosen(harmonics) == taken
    lacks = set(range(2, 12)) - set(kernel.nonzero_degrees(3, 12))
    assert lacks and not lacks & set(harmonics.degrees) and max(harmonics.degrees) >= 4


def test_many_columns_of_which_four_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = []
    mean = HarmonicSquares.mean
    monkeypatch.setattr(HarmonicSquares, "mean", lambda *a: looked_at.append(a[1]) or mean(*a))
    matter = [3, 8, 20, 29]
    weights = np.full(30, 1e-3)
    weights[matter] = 1.0
    harmonics = for_data(SphericalMatern52(weight_variances=weights), normal(5_000, 30), 500)
    assert harmonics.num_inducing == 500 and max(harmonics.degrees) >= 6
    assert set(harmonics.column_order[-4:]) == set(matter)
    assert len(looked_at) < 6_000  # of 10^7 up to degree 6
    raised = np.count_nonzero(raises_of(harmonics.chains), axis=0)
    assert min(raised[-5:]) > 5 * max(raised[:-5])


def test_what_does_not_matter() -> None:
    """The variance; other columns; and, with columns that are all alike, rounding. Of more rows
    than are looked at, the same are."""
    X, weights = normal(3_000, 5), [0.1, 2.0, 0.5]
    alone = for_data(SphericalMatern32(weight_variances=weights), X[:, [4, 0, 2]], 40)
    options = {"weight_variances": weights, "active_dims": [4, 0, 2], "variance": 1e-30}
    some = for_data(SphericalMatern32(**options), X, 40)
    np.testing.assert_array_equal(some.chains, alone.chains)
    assert some.column_order == alone.column_order
    alike = np.repeat(X[:100, :1], 4, axis=1)
    assert for_data(SphericalMatern32(), alike, 50).column_order == (0, 1, 2, 3)


def test_columns_without_variance() -> None:
    """Nothing is raised in a column of zeros; one that is constant is a second bias."""
    X = normal(80, 4)
    X[:, 1], X[:, 2] = 0.0, 0.5
    harmonics = for_data(SphericalMatern52(), X, 100)
    assert harmonics.column_order[:2] == (1, 2) and harmonics.num_inducing == 100
    X[:, 2] = 0.0
    harmonics = for_data(SphericalMatern52(), X, 100)
    assert np.all(harmonics.chains[:, 0] == 0) and np.any(harmonics.chains[:, 1] > 0)


def test_fewer_than_asked_for() -> None:
    kernel, X = SphericalMatern52(), normal(50, 2)
    everything = for_data(kernel, X, 1_000, max_degree=3)
    assert everything.degrees == (0, 1, 2, 3) and everything.multiplicities == (1, 3, 5, 7)
    assert for_data(ArcCosine(), X, 1_000, max_degree=3).degrees == (0, 1, 2)
    # Without any other than those of zeros in the first column, which vanish.
    X[:, 0] = 0.0
    assert for_data(kernel, X, 1_000, max_degree=3).num_inducing < 16
    assert for_data(kernel, X, 1).degrees == (0,)
    for hardly_any in (normal(1, 2), np.zeros((3, 2))):
        assert for_data(ArcCosine(), hardly_any, 8).num_inducing == 8


class _WithoutConstant(SphericalMatern52):
    def has_degree(self, dimension: int, degree: int) -> bool:
        return degree > 0


def test_errors() -> None:
    X, four_dimensional, one_column = (
        normal(5, 2),
        partial(SphericalHarmonics, 4),
        ArcCosine(weight_variances=[1.0]),
    )
    no_zonal = "kernel must be a ZonalKernel, found SquaredExponential; .*ArcCosine"
    reach = "max_degree must reach a degree that _WithoutConstant has, found 0; pass a higher one"
    order = r"column_order must be a permutation of 3 columns, found \[0, 0, 1\]; .*least first"
    increasing, twice = "degrees must be increasing, ", [[1, 1, 1]] * 2
    assert_refused(
        [
            (lambda: for_data(RBF(), X, 9), no_zonal),
            (lambda: SphericalHarmonics.for_kernel(RBF(), 3, 2), no_zonal),
            (lambda: for_data(one_column, X, 9), "X must have 1 columns, one for"),
            (lambda: for_data(_WithoutConstant(), X, 9, max_degree=0), reach),
            (lambda: four_dimensional([2, 1]), increasing + r".* without repeats, found \(2, 1\)"),
            (lambda: four_dimensional([-1, 2]), increasing + "0 or more and without repeats"),
            (four_dimensional, "degrees must be integers, found None; pass for example range"),
            (
                lambda: four_dimensional(chains=twice),
                r"chains must be different, found \[1, 1, 1\] twice; pass",
            ),
            (
                lambda: four_dimensional([0, 1], chains=[[0, 0, 2]]),
                "degrees must be None with chains, found both",
            ),
            (lambda: four_dimensional([1], column_order=[0, 0, 1]), order),
        ]
    )


# Single chains: what a part of the whole degrees would be.

ROWS = np.random.default_rng(0).normal(size=(9, 3))
ALL = SphericalHarmonics(4, range(4)).chains


def matern() -> SphericalMatern52:
    return SphericalMatern52(
        variance=1.3, lengthscale=0.8, weight_variances=[0.6, 1.7, 0.3], bias_variance=0.8
    )


def some(seed: int, count: int = 12, order: tuple[int, ...] | None = None) -> SphericalHarmonics:
    chains = np.random.default_rng(seed).permutation(ALL)[:count]
    return SphericalHarmonics(4, chains=chains, column_order=order)


def rows_of(part: SphericalHarmonics, whole: SphericalHarmonics) -> list[int]:
    places = {tuple(chain): row for row, chain in enumerate(whole.chains.tolist())}
    return [places[tuple(chain)] for chain in part.chains.tolist()]


@pytest.mark.parametrize("order", [None, (2, 0, 1)])
def test_covariances_are_rows_of_those_of_whole_degrees(order: tuple[int, ...] | None) -> None:
    kernel, part = matern(), some(1, order=order)
    whole = SphericalHarmonics(4, range(4), column_order=order)
    rows = rows_of(part, whole)
    assert rows != sorted(rows) and part.num_inducing == 12
    variables = (kernel.weight_variances, kernel.bias_variance)
    inputs = tf.Variable(ROWS)
    weights = np.random.default_rng(2).normal(size=(12, 9))
    assert_same_objective(
        lambda: tf.reduce_sum(weights * Kuf(part, kernel, inputs)),
        lambda: tf.reduce_sum(weights * tf.gather(Kuf(whole, kernel, inputs), rows)),
        (inputs, *(variable.unconstrained_variable for variable in variables)),
        rtol=1e-11,
    )
    assert_close(Kuf(part, kernel, ROWS), Kuf(whole, kernel, ROWS).numpy()[rows], rtol=1e-12)
    diagonal = np.diag(Kuu(whole, kernel))[rows]
    np.testing.assert_allclose(Kuu(part, kernel), np.diag(diagonal), rtol=1e-12)
    np.testing.assert_allclose(Kuu_operator(part, kernel).diag_part(), diagonal, rtol=1e-12)
    eigenvalues = kernel.eigenvalues(4, range(4)).numpy()
    expected = 1 / (1.3 * eigenvalues[np.abs(part.chains[:, -1])])
    np.testing.assert_allclose(diagonal, expected, rtol=1e-12)


def test_column_order_is_that_of_permuted_columns() -> None:
    order = (2, 0, 1)
    permuted = matern()
    permuted.weight_variances.assign(permuted.weight_variances.numpy()[list(order)])
    expected = Kuf(some(1), permuted, ROWS[:, order])
    assert_close(Kuf(some(1, order=order), matern(), ROWS), expected, rtol=1e-12)
    # Whole degrees are other functions, too, and span the same space.
    whole = [SphericalHarmonics(4, [0, 2], column_order=c) for c in (None, order)]
    explained = [tf.matmul(f, f, transpose_a=True) for f in (Kuf(u, matern(), ROWS) for u in whole)]
    assert_close(*explained, rtol=1e-12)


def test_eigenvalues_that_single_precision_cannot_invert() -> None:
    """On the sphere in 31 dimensions they fall by a factor of ten or more from degree to degree:
    there is no direction in which more than the prior variance is explained."""
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        weights = np.array([3.0, 3.0, *[1e-4] * 28])
        kernel = SphericalMatern12(weight_variances=weights, bias_variance=0.3, lengthscale=0.15)
        inputs = np.random.default_rng(4).normal(size=(100, 30)).astype(np.float32)
        harmonics = SphericalHarmonics.for_data(kernel, inputs, 1_000)
        assert 6 < max(harmonics.degrees) < 15
        Kff, features = kernel(inputs).numpy(), Kuf(harmonics, kernel, inputs).numpy()
        assert features.dtype == Kff.dtype == np.float32
        inverse = 1 / Kuu_operator(harmonics, kernel).diag_part().numpy()
        left = Kff - features.T @ (features * inverse[:, None])
        assert np.linalg.eigvalsh(left.astype(float))[0] > -200 * np.finfo("f4").eps * np.max(Kff)


def test_covariances_between_sets() -> None:
    kernel, v, u = matern(), some(4), some(5)
    whole = SphericalHarmonics(4, range(4))
    between = Kuu(whole, kernel).numpy()[rows_of(v, whole)][:, rows_of(u, whole)]
    assert np.count_nonzero(between) > 0
    np.testing.assert_allclose(Kvu(v, u, kernel), between, rtol=1e-12)
    units = ActivationFeatures.random(3, 4, "softplus", 4, seed=1)
    expected = Kvu(units, whole, kernel).numpy()[:, rows_of(u, whole)]
    assert_close(Kvu(units, u, kernel), expected, rtol=1e-12)
    assert_close(Kvu(u, units, kernel), expected.T, rtol=1e-12)
    points = InducingPoints(ROWS[:4])
    assert_close(Kvu(points, u, kernel), tf.transpose(Kuf(u, kernel, ROWS[:4])), rtol=1e-12)
    message = r"iv_v, iv_u: column_order must be the same for both, found \(0, 1, 2\) and \(2, 0, 1"
    with pytest.raises(ValueError, match=message):
        Kvu(v, some(5, order=(2, 0, 1)), kernel)
