"""Space and time: what is refused, and by which message."""

import tracemalloc
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32

import interdomain as idm
from interdomain import _arguments
from interdomain.inducing_variables import (
    FixedPlaces,
    ProductInducingVariables,
    SplineFeatures,
    SumInducingVariables,
)
from interdomain.models import DualSVGP, StructuredSGPR
from tests.sums.test_space_time import NEW, X, Y, splines, stations, time, with_stations


def refused(kernel: Any, features: Any, message: str, rows: Any = X) -> None:
    for make in (
        lambda: StructuredSGPR((rows, Y), kernel, features).elbo(),
        lambda: DualSVGP((rows, Y), kernel, gpflow.likelihoods.Gaussian(), features).elbo(),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_two_columns_of_splines() -> None:
    along = Matern32(active_dims=[0])
    features = ProductInducingVariables([SplineFeatures(-1, 1, 5, 2), splines()])
    message = (
        r"have splines of one column, time, in a product, found 5 of column 0 from -1 to 1 and 14 "
        r"of column 2 from -0.1 to 10.2; pass one SplineFeatures of both columns"
    )
    refused(along * time(), features, message)


@pytest.mark.parametrize("other", [splines(2, 15), splines(3), SplineFeatures(-0.2, 10.2, 14, 2)])
def test_other_knots(other: SplineFeatures) -> None:
    kernel, places = stations()
    blocks = [ProductInducingVariables([places, one]) for one in (splines(), other)]
    sums = kernel * time() + kernel * time()
    refused(sums, SumInducingVariables(blocks), "the same splines of time.*one SplineFeatures obj")
    alone = SumInducingVariables([blocks[0], other])
    refused(kernel * time() + time(), alone, "the same splines of time in all terms")


DAYS = np.datetime64("2024-01-01") + np.arange(180).astype("timedelta64[h]")
REMEDY = r"hours \(t - t\[0\]\) / np.timedelta64\(1, \"h\"\)"


def test_dates() -> None:
    """In rows, boxes and new rows, as dates or as objects."""
    kernel, features = with_stations()
    rows = np.column_stack([DAYS] * 4)
    for dates in (rows, rows.astype(object), rows - rows[0]):
        refused(kernel, features, f"data: X must be .*real numbers.*{REMEDY}", dates)
    model = StructuredSGPR((X, Y), kernel, features)
    for call in (
        lambda: SplineFeatures(DAYS[0], DAYS[-1], 10, 2),
        lambda: SplineFeatures.from_data(DAYS[:, None], 10, 2),
        lambda: idm.predict_in_batches(model, rows, progress=False),
    ):
        with pytest.raises(ValueError, match=REMEDY):
            call()


def test_times_without_digits() -> None:
    """Nanoseconds since 1970; and hours since 1970 in float32."""
    nanoseconds = DAYS.astype("datetime64[ns]").astype(float)[:, None]
    message = rf"lower must be near zero in units of the cells.*from 1.7\d*e\+18 to .*{REMEDY}"
    with pytest.raises(ValueError, match=message):
        SplineFeatures.from_data(nanoseconds, 50, 2)
    hours = nanoseconds / 3.6e12
    assert SplineFeatures.from_data(hours, 50, 2).num_inducing == 50
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        with pytest.raises(ValueError, match="so that float32 keeps the digits"):
            SplineFeatures.from_data(hours, 50, 2)
        SplineFeatures.from_data(hours - hours[0], 50, 2)


def test_memory(monkeypatch: Any) -> None:
    """Constructors allocate little; a model says what it would need before it is built."""
    kernel, _ = stations()
    places = FixedPlaces(np.random.default_rng(0).normal(size=[1_000, 2]))
    tracemalloc.start()
    features = ProductInducingVariables([places, splines(2, 500)])
    prior = idm.kernels.FiniteRank(kernel * time(), features)
    assert features.num_inducing == 500_000 and tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.reset_peak()
    monkeypatch.setattr(_arguments, "MAX_GIB", 20.0)
    with pytest.raises(ValueError, match=r"500,000 features and its factor would take .* GiB"):
        StructuredSGPR((X, Y), prior, features)
    assert tracemalloc.get_traced_memory()[1] < 2**27
    tracemalloc.reset_peak()
    many = ProductInducingVariables([places, splines(2, 10_000_000)])
    with pytest.raises(ValueError, match=r"10,000,000,000 products would take .* GiB, more than"):
        StructuredSGPR((X, Y), kernel * time(), many)
    assert tracemalloc.get_traced_memory()[1] < 2**29
    tracemalloc.stop()


def test_fixed_places() -> None:
    kernel, places = stations()
    prior, features = with_stations()
    elsewhere = X.copy()
    elsewhere[7, 0] += 0.01
    message = r"data: X must be at the fixed places, found a row at \[.*from_data\(X\) with all"
    refused(prior, features, message, elsewhere)
    assert StructuredSGPR((X, Y), prior, features).predict_f(NEW)[0].shape == (7, 2)
    with pytest.raises(ValueError, match="at the fixed places"):
        StructuredSGPR((X, Y), prior, features).accumulate((elsewhere, Y))
    wider = Matern32(active_dims=[0, 1, 3])
    for call, match in [
        (lambda: FixedPlaces(places.places, [0]), "columns must be 2 different integers"),
        (lambda: FixedPlaces(places.places, [1, 1]), "columns must be 2 different integers"),
        (lambda: FixedPlaces(places.places, [0, -1]), "columns must be 2 different integers"),
        (lambda: FixedPlaces([[0.0], [1.0], [0.0]]), r"be different, found \[0.*\] twice"),
        (lambda: FixedPlaces([[0.0], [np.nan]]), "places must be finite"),
        (lambda: FixedPlaces(np.zeros([0, 2])), "places must be a matrix"),
        (lambda: FixedPlaces.from_data(X, [0, 4]), "columns must be columns of X, 0 to 3"),
        (lambda: FixedPlaces.from_data(X[:, 0]), "X must be a matrix"),
        (lambda: gpflow.covariances.Kuf(places, wider, X), r"\[3\] too; pass active_dims to the"),
        (lambda: StructuredSGPR((X, Y), wider, places), r"use only columns \[0, 1\] of X"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()
    assert kernel(tf.zeros([1, 4], tf.float64)).shape == (1, 1)
