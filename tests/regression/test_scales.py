"""Warnings of data that a model will learn nothing of: one for each cause, and no false ones."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32

from interdomain import fit
from interdomain.inducing_variables import (
    InducingPatches,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import Convolutional, FiniteRank, SphericalMatern32
from interdomain.models import StructuredSGPR
from interdomain.regression.scales import warn_of_data

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (60, 2))
Y = np.sin(3 * X[:, :1]) + 0.1 * RNG.normal(size=(60, 1))
CATEGORIES = np.stack([RNG.integers(0, 5_000, 60), RNG.integers(2_000, 2_025, 60)], axis=1)


def svgp(kernel: Any, inducing_variable: Any = None, likelihood: Any = None) -> Any:
    return gpflow.models.SVGP(
        kernel,
        likelihood or gpflow.likelihoods.Gaussian(),
        X[:5].copy() if inducing_variable is None else inducing_variable,
        num_data=60,
    )


def finite_rank(kernel: Any, max_degree: int) -> tuple[Any, Any]:
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree)
    return FiniteRank(kernel, harmonics), harmonics


def on_the_sphere() -> Any:
    return svgp(*finite_rank(SphericalMatern32(), 3))


def on_an_interval(lower: float, upper: float) -> Any:
    return svgp(Matern32(active_dims=[1]), VariationalFourierFeatures(lower, upper, 3))


def sum_on_intervals() -> Any:
    return svgp(
        Matern32(active_dims=[0]) + Matern32(active_dims=[1]),
        SumInducingVariables(
            [VariationalFourierFeatures(-1, 1, 3), VariationalFourierFeatures(-0.5, 0.5, 3)]
        ),
    )


def regression(Y: np.ndarray) -> Any:
    return gpflow.models.GPR((X, Y), Matern32())


def caught(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    ours = [w for w in found if issubclass(w.category, UserWarning) and w.filename == __file__]
    return [str(warning.message) for warning in ours]


WRONG: dict[str, tuple[Any, Any, str]] = {
    "scaled": (lambda: svgp(Matern32()), (X * 1e4 + 1e6, Y), r"column 0 with.*X\.std.*Matern32"),
    "shrunk": (lambda: svgp(Matern32()), (X * 1e-4, Y), "column 0 with a size of 0.000"),
    "off the centre": (on_the_sphere, (X + 1e4, Y), r"column 0 with a size of 1e\+04"),
    "Y off the prior": (lambda: regression(Y + 1e3), None, r"Y is up to 1e\+03 .*Y\.std"),
    "interval of a sum": (
        sum_on_intervals,
        (X, Y),
        r"[0-9]+ of 60 rows of X are outside of the interval \[-0\.5, 0\.5\] .*: column 1 goes "
        r"from .*from_data\(X",
    ),
}

RIGHT: dict[str, tuple[Any, Any]] = {
    "standardised": (lambda: svgp(Matern32()), (X, Y)),
    "on the sphere": (on_the_sphere, (X + 3, Y)),
    "lengthscales to match": (lambda: svgp(Matern32(lengthscales=5e3)), (X * 1e4 + 1e6, Y)),
    "a tenth of a lengthscale": (lambda: svgp(Matern32()), (X / 30, Y)),
    "a trained lengthscale": (lambda: svgp(Matern32(lengthscales=[1e-4, 1e5])), (X, Y)),
    "weights to match": (
        lambda: svgp(*finite_rank(SphericalMatern32(weight_variances=1e-8), 3)),
        (X * 1e4, Y),
    ),
    "categories and years": (lambda: svgp(Matern32()), (CATEGORIES.astype(float), Y)),
    "a constant column": (lambda: svgp(Matern32()), (np.append(X, 0 * X + 1, axis=1)[:, :2], Y)),
    "interval": (lambda: on_an_interval(-1.5, 1.5), (X, Y)),
    "labels": (
        lambda: svgp(Matern32(), likelihood=gpflow.likelihoods.Bernoulli()),
        (X, (Y > 0).astype(float)),
    ),
}


def test_each_cause_is_told_once() -> None:
    for name, (build, data, message) in WRONG.items():
        model = build()
        found = caught(lambda m=model, d=data: warn_of_data(m, *(d or m.data)))
        assert len(found) == 1 and re.search(message, found[0]), (name, found)


def test_no_false_alarms() -> None:
    for name, (build, data) in RIGHT.items():
        model = build()
        assert caught(lambda m=model, d=data: warn_of_data(m, *d)) == [], name


def test_pixels_are_no_columns() -> None:
    images = RNG.uniform(0, 255.0, (60, 36))
    images[:, 0] = 0.998 * 255.0  # a corner that hardly varies
    images[0, 0] = 255.0
    for kernel in (Convolutional(Matern32(), (6, 6), (3, 3)), Matern32()):
        points: Any = images[:5].copy()
        if isinstance(kernel, Convolutional):
            points = InducingPatches.from_data(kernel, images, 5)
        model = svgp(kernel, points)
        assert caught(lambda m=model: warn_of_data(m, images, Y)) == []


# Data that are read a batch at a time.


def batches(X: np.ndarray, Y: np.ndarray) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(10)


def test_a_dataset_is_read_no_more_than_it_was() -> None:
    """One whose rows depend on how often it was read gives the same steps, in the same order."""
    read = []

    def rows() -> Any:
        for k in range(6):
            read.append(k)
            yield 1e4 * X[10 * k : 10 * k + 10], Y[10 * k : 10 * k + 10]

    signature = tuple(tf.TensorSpec([None, size], tf.float64) for size in (2, 1))
    dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)
    seen: list[Any] = []
    model = svgp(Matern32())
    loss = model.training_loss

    def noted(data: Any) -> Any:
        tf.py_function(lambda first: seen.append(float(first)), [data[0][0, 0]], [])
        return loss(data)

    model.training_loss = noted
    (found,) = caught(lambda: fit(model, dataset, steps=3, progress=False))
    assert "columns of X are far from standardised" in found
    assert read == list(range(len(read))) and len(read) <= 6
    assert list(dict.fromkeys(seen)) == [1e4 * X[10 * k, 0] for k in range(3)]


def structured_sgpr(data: Any, **settings: Any) -> StructuredSGPR:
    settings = {"progress": False, "batch_size": 20} | settings
    return StructuredSGPR(data, Matern32(), X[:5].copy(), **settings)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lambda: iter([(X * 1e4, Y)]), "columns of X are far from standardised"),
        ((X, 1e4 * Y + 1e6), r"Y is up to 1.01e\+06"),
    ],
    ids=["generator", "Y"],
)
def test_a_model_that_holds_rows_tells_once(data: Any, message: str) -> None:
    def use() -> None:
        model = structured_sgpr(data)
        model.elbo()
        fit(model, steps=1, progress=False, options={"subset_size": 30, "subset_steps": 1})

    (text,) = caught(use)
    assert re.search(message, text), text


def test_nothing_is_told_of_right_rows() -> None:
    rows = X.copy()
    rows[0, 0] = np.nan
    for data in ((X, Y), batches(X, Y), structured_sgpr((X, Y)).statistics):
        assert caught(lambda d=data: structured_sgpr(d).statistics) == []
    assert caught(lambda: structured_sgpr((rows, Y))) == []  # which a pass refuses
