"""Wrong arguments of functionals and of their kernel."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest

import interdomain as idm
from interdomain.functionals import Areas, Blur, ByDegree, Derivative, Mean, Value
from interdomain.inducing_variables import SphericalHarmonics, SplineFeatures
from interdomain.kernels import FiniteRank, Functional, GlobeMatern52
from tests.functional_parts import waves

ROWS = np.array([[0.5, 0.1, 0], [0.4, 0.2, 1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mean([-1.0]), "widths must be 0 or more, found"),
        (lambda: Mean(0), "widths must be positive for an input"),
        (lambda: Mean(np.nan), "widths must be finite"),
        (lambda: Mean(width_columns=[-1]), "width_columns must be an integer of 0 or more"),
        (lambda: Blur(-1.0), "variances must be 0 or more, and positive"),
        (lambda: Areas([[0.0], [1.0]], regions=[0, 2]), "points must have a point in every region"),
        (lambda: Areas([[0.0], [1.0]], regions=[0, -2]), "regions must be 2 integers from 0"),
        (lambda: Areas([[0.0], [1.0]], [1.0, np.nan]), "weights must be finite"),
        (lambda: Areas([[0.0], [1.0]], [1.0]), "weights must have 2 numbers, found 1"),
        (lambda: Derivative(-1), "column must be an integer of 0 or more"),
        (lambda: Derivative(0, 3), "order must be 1 or 2, found 3"),
        (lambda: ByDegree([[1.0]]), "factors must be a vector"),
        (lambda: Functional(gpflow.kernels.Matern12(), Derivative(0)), "not differentiable, found"),
        (
            lambda: Functional(gpflow.kernels.RBF() + gpflow.kernels.White(), Value()),
            "prior must be the kernel of a function, found White noise; .* add the White kernel to",
        ),
        (lambda: Areas([[0.0], [1.0]], regions=[[0, 1]]), r"regions must be a vector \[Q\], found"),
    ],
)
def test_constructors(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_arithmetic_is_that_of_numbers() -> None:
    terms = (7 * (Mean([7.0]) - Value()) * 2 + Derivative(0)).terms
    assert [weight for weight, _ in terms] == [14.0, -14.0, 1.0]
    for wrong in (lambda: Mean([1.0]) * Mean([1.0]), lambda: Mean([1.0]) + 1):
        with pytest.raises(TypeError):
            wrong()


def test_rows_and_kernels_that_do_not_fit() -> None:
    prior, features = waves()
    wrong = ROWS * [1, -1, 1]
    kernel = Functional(prior, [Value(), Mean(width_columns=[1])])
    with pytest.raises(ValueError, match="widths of 0 or more in column 1"):
        idm.models.StructuredSGPR((wrong, ROWS[:, :1]), kernel, features).elbo()
    with pytest.raises(ValueError, match="column must be below 1, the number of inputs"):
        Functional(prior, [Value(), Derivative(3)])(ROWS[:, [0, 2]])
    with pytest.raises(ValueError, match="ByDegree for features that have no degrees"):
        Functional(prior, ByDegree([1.0]))(ROWS[:, :1])
    globe = GlobeMatern52()
    harmonics = SphericalHarmonics.for_kernel(globe, 2, max_degree=5)
    with pytest.raises(ValueError, match="factors must have 6 entries or more"):
        Functional(FiniteRank(globe, harmonics), ByDegree([1.0, 2.0]))(np.array([[10.0, 20.0]]))


def test_splines_that_would_need_too_much_memory() -> None:
    splines = SplineFeatures([0.0, 0.0], [1.0, 1.0], [300, 300], 2)
    factors = [gpflow.kernels.Matern32(active_dims=[column]) for column in (0, 1)]
    prior = FiniteRank(factors[0] * factors[1], splines)
    for functional, message in (
        (Mean([0.9, 0.9]), "widths or variances of functionals: the precision of 90,000 splines"),
        (Areas([[0.1, 0.1]]), "found Areas with 90,000"),
    ):
        kernel = Functional(prior, functional)
        with pytest.raises(ValueError, match=message):
            idm.models.StructuredSGPR((ROWS[:, :2] * [0, 1], ROWS[:, :1]), kernel, splines)
