"""Where features are made for: values inside against Kuf, and boxes in the right columns."""

import itertools
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, Matern12, Matern32, SquaredExponential, White

from interdomain.core.domains import boxes, outside_of_any
from interdomain.core.pairs import Kuf_in_domain
from interdomain.functionals import Areas
from interdomain.inducing_variables import SumInducingVariables, VariationalFourierFeatures
from interdomain.kernels import Functional
from tests.conformance.helpers import assert_close, compiled
from tests.families.waves.interval_cases import LOWER, UPPER, features, kernel

POINTS = np.random.default_rng(0).normal(size=(4, 3))


def additive() -> tuple[Kernel, Any]:
    """A sum within a sum: column 2, column 0, points of all columns, and white noise without."""
    inner = Matern12(active_dims=[0]) + SquaredExponential(lengthscales=[0.5, 1.0, 2.0])
    blocks = [features(), VariationalFourierFeatures(-2.0, 3.0, 2), InducingPoints(POINTS), None]
    return Matern32(active_dims=[2]) + inner + White(), SumInducingVariables(blocks)


def variables_of(build: Any, columns: int) -> tuple[tf.Variable, ...]:
    return compiled(build, [None, columns]).get_concrete_function().graph.variables


def test_values_inside_are_those_of_Kuf() -> None:
    """The ends are inside; to the last bit, and without a parameter; batches, active columns."""
    for order, dtype in itertools.product((0, 1, 2), (np.float64, np.float32)):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            k, iv = kernel(order), features()
            X = np.linspace(LOWER, UPPER, 9).astype(dtype)[:, None]
            X = np.clip(X, dtype(LOWER), dtype(UPPER))
            found = Kuf_in_domain(iv, k, X)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, Kuf(iv, k, X))
            assert variables_of(lambda X, iv=iv, k=k: Kuf_in_domain(iv, k, X), 1) == ()
    X = np.random.default_rng(3).uniform(LOWER, UPPER, size=(2, 3, 4, 3))
    k = kernel(1, active_dims=[2])
    np.testing.assert_array_equal(Kuf_in_domain(iv, k, X), Kuf(iv, k, X))
    with pytest.raises(ValueError, match="X must have one column, found 3"):
        Kuf_in_domain(iv, kernel(1), X)


def test_sums() -> None:
    """Block by block: those that know no domain as everywhere."""
    k, iv = additive()
    X = np.random.default_rng(3).uniform(0, 1, size=(5, 3))
    assert_close(Kuf_in_domain(iv, k, X), Kuf(iv, k, X), rtol=1e-15)
    points = k.kernels[2]
    found = variables_of(lambda X: Kuf_in_domain(iv, k, X), 3)
    expected = [*points.trainable_variables, iv.inducing_variables[2].Z.unconstrained_variable]
    assert {id(v) for v in found} == {id(v) for v in expected}


def test_boxes_are_in_columns_of_x() -> None:
    k, iv = additive()
    found = [(box.columns.tolist(), box.lower.tolist()) for box in boxes(iv, k, 3)]
    assert found == [([2], [LOWER]), ([0], [-2.0])]
    X = np.array([[0.0, 99, 0], [-2, 99, LOWER], [3, 99, UPPER], [-2.1, 0, 0], [0, 0, 2]])
    assert outside_of_any(boxes(iv, k, 3), X).tolist() == [False, False, False, True, True]
    nowhere = np.array([[np.nan, 0.0, 0.0]])
    assert not outside_of_any(boxes(iv, k, 3), nowhere).any()
    assert boxes(InducingPoints(POINTS), Matern32(), 3) == []


def test_rows_of_regions() -> None:
    """A row is outside if a point of its region is, whatever the number of points is."""
    points = [[UPPER + 1, LOWER, UPPER], [LOWER, UPPER, LOWER]]
    regions = Areas(np.ravel(points)[:, None], regions=[0, 0, 1, 2, 2, 2])
    acted = Functional(Matern32(), [regions, 2 * regions])
    (box,) = boxes(features(), acted, 2)
    X = np.array([[1.0, 0], [0, 0], [2, 0], [0, 1], [1, 1], [2, 1]])
    for rows in (X, X[:3], X[:2], X[1:2], X[:0]):
        assert box.outside(rows).tolist() == (rows[:, 0] == 0).tolist()


def test_rounding_leaves_no_row_outside() -> None:
    """Rows that an interval was made from lie inside of it, in either float type."""
    X = np.random.default_rng(0).normal(size=(200, 1)) * np.pi
    iv = VariationalFourierFeatures.from_data(X, 3, margin=0.0)
    for dtype in (np.float64, np.float32):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            for rows in (X, X.astype(dtype)):
                assert not outside_of_any(boxes(iv, Matern32(), 1), rows).any()


def test_rows_a_rounding_beyond_an_end_are_at_the_end() -> None:
    """In either type, eager and compiled; and farther beyond they are outside, as before."""
    iv, k = features(), kernel(1)
    for dtype, near, far in ((np.float64, 5e-10, 5e-9), (np.float32, 2e-7, 1e-4)):
        with gpflow.config.as_context(gpflow.config.Config(float=dtype)):
            k = kernel(1)
            ends = np.array([[LOWER], [UPPER]], dtype)
            for share, is_outside in ((0.0, False), (near, False), (far, True)):
                rows = ends + np.array([[-share], [share]]) * (UPPER - LOWER)
                rows = rows.astype(dtype)
                assert outside_of_any(boxes(iv, k, 1), rows).tolist() == [is_outside] * 2
                for covariance in (Kuf_in_domain, tf.function(Kuf_in_domain, autograph=False)):
                    found = covariance(iv, k, tf.constant(rows))
                    at_ends = np.array_equal(found, covariance(iv, k, tf.constant(ends)))
                    assert at_ends != is_outside
                assert np.array_equal(Kuf(iv, k, rows), Kuf(iv, k, ends)) != is_outside
