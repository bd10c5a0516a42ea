"""Targets far from zero: the same bound, gradients and predictions as of targets near zero."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.functions import Constant, Linear, MeanFunction
from gpflow.kernels import Matern32

import interdomain as idm
from interdomain.inducing_variables import SplineFeatures
from interdomain.kernels import SphericalMatern32
from interdomain.models import StructuredSGPR
from interdomain.regression import SufficientStatistics
from tests.conformance.helpers import assert_close
from tests.parts import finite_rank, with_harmonics, with_waves

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=[90, 2])
Y = np.hstack([np.sin(4 * X[:, :1]), X[:, 1:]]) + 0.1 * RNG.normal(size=[90, 2])
NEW = RNG.uniform(-1, 1, size=[5, 2])


class Bent(MeanFunction):
    """A mean function that is no sum of columns with weights."""

    def __init__(self, level: float) -> None:
        super().__init__()
        self.level = gpflow.Parameter(np.full(2, level), trainable=False)

    def __call__(self, X: Any) -> tf.Tensor:
        return self.level + tf.square(X)


def linear(level: float) -> MeanFunction:
    return Linear(np.full([2, 2], 0.3), np.full(2, level))


def harmonics() -> tuple[Any, Any]:
    return finite_rank(*with_harmonics(SphericalMatern32(), 3, fixed=True))


def splines() -> tuple[Any, Any]:
    factors = [Matern32(lengthscales=0.6, active_dims=[d]) for d in (0, 1)]
    return factors[0] * factors[1], SplineFeatures([-1.0] * 2, [1.0] * 2, 6, 2)


def waves() -> tuple[Any, Any]:
    """So many that sums are looked up in tables."""
    return with_waves(Matern32(lengthscales=[0.5, 0.5]), X, 80)


def points() -> tuple[Any, Any]:
    """Whose gradients take all rows."""
    return Matern32(), X[:8].copy()


FAMILIES = [harmonics, splines, waves, points]


def model_of(parts: Callable[[], Any], Y: np.ndarray, mean: Any = None, **how: Any) -> Any:
    how = {"noise_variance": 0.02, "batch_size": 40, "progress": False} | how
    return StructuredSGPR((X, Y), *parts(), mean_function=mean, **how)


def evidence(model: StructuredSGPR) -> list[tf.Tensor]:
    with tf.GradientTape() as tape:
        value = model.elbo()
    return [value, *tape.gradient(value, model.trainable_variables)]


@pytest.mark.parametrize("parts", FAMILIES)
def test_a_constant_mean_takes_the_offset(parts: Any) -> None:
    """The mean takes the offset of Y without loss of digits, for every class of mean."""
    cases: list[tuple[Any, float]] = [(Constant, 1e8)]
    if parts is harmonics:
        cases += [(Constant, 30.0), (linear, 1e8)]
    if parts in (harmonics, points):
        cases.append((Bent, 1e8))
    for mean, offset in cases:
        shifted = Y + offset
        expected = model_of(parts, shifted - offset, mean(0.0))
        model = model_of(parts, shifted, mean(offset))
        rounding = 1e-15 * offset  # of the values of a mean function, which predictions have, too
        tolerance = 1e-10 + rounding * (mean is Bent)
        assert_close(evidence(model), evidence(expected), rtol=tolerance)
        (f, variance), (right, right_variance) = (m.predict_f(NEW) for m in (model, expected))
        np.testing.assert_allclose(f - offset, right, atol=1e-12 + rounding)
        np.testing.assert_allclose(variance, right_variance, rtol=1e-10)
    compiled = tf.function(model.elbo, autograph=False)
    np.testing.assert_allclose(compiled(), model.elbo(), rtol=1e-10)


def test_sums_of_different_references_add_up(tmp_path: Path) -> None:
    """Sums of parts and of files add up, of earlier versions too; and with a far reference."""
    shifted = Y + 1e6
    whole = model_of(harmonics, shifted, Constant(1e6))
    near = model_of(harmonics, Y, Constant(1e6)).statistics
    assert np.all(near.reference == 0) and np.all(whole.statistics.reference != 0)
    first = whole.accumulate((X[:40], shifted[:40]))
    second = whole.accumulate((X[40:], shifted[40:] + 0.0))
    assert not np.array_equal(first.reference, second.reference)
    first.save(tmp_path / "first.npz")
    again = SufficientStatistics.load(tmp_path / "first.npz")
    np.testing.assert_array_equal(again.reference, first.reference)
    for both in (again + second, second + again, whole.statistics + second - second):
        model = StructuredSGPR(both, *harmonics(), mean_function=Constant(1e6), noise_variance=0.02)
        np.testing.assert_allclose(model.elbo(), whole.elbo(), rtol=1e-9)
    two = StructuredSGPR((np.r_[X, X], np.r_[Y, shifted]), *harmonics(), progress=False)
    for both in (near + whole.statistics, whole.statistics + near):
        model = StructuredSGPR(both, *harmonics())
        np.testing.assert_allclose(model.elbo(), two.elbo(), rtol=1e-9)
    # Earlier versions refuse a file with a reference, and theirs have none.
    header = json.loads(str(np.load(tmp_path / "first.npz")["header"]))
    assert header["description"].keys() - near.description.keys() == {"reference of Y"}
    near.save(tmp_path / "near.npz")
    header = json.loads(str(np.load(tmp_path / "near.npz")["header"]))
    assert header["description"] == near.description
    one = first.all_reduce(tf.distribute.OneDeviceStrategy("CPU:0"))
    np.testing.assert_array_equal(one.sums["products"], first.sums["products"])


def test_batches_in_any_order_and_single_precision() -> None:
    shifted = Y + 2.0**20
    expected = model_of(harmonics, shifted - 2.0**20, Constant(0.0)).elbo()
    for rows in (slice(None, None, -1), RNG.permutation(len(X))):
        data = tf.data.Dataset.from_tensor_slices((X[rows], shifted[rows])).batch(7)
        settings: dict[str, Any] = {"noise_variance": 0.02, "batch_size": 7}
        model = StructuredSGPR(data, *harmonics(), mean_function=Constant(2.0**20), **settings)
        np.testing.assert_allclose(model.elbo(), expected, rtol=1e-9)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        for parts in (harmonics, points):
            right = model_of(parts, Y, Constant(0.0)).elbo()
            found = model_of(parts, shifted, Constant(2.0**20)).elbo()
            np.testing.assert_allclose(found, right, rtol=1e-3)


@pytest.mark.parametrize("parts", FAMILIES[:3])
def test_no_bound_above_what_the_noise_allows(parts: Any) -> None:
    """Under a zero mean, wherever the variance is: a number that can be, or an error that says what
    to do; and line searches reject such points."""
    for offset in (1e3, 1e8):
        model = model_of(parts, Y + offset)
        named, refused = gpflow.utilities.parameter_dict(model.kernel).items(), 0
        kernel = next(part for name, part in named if name.endswith(".variance"))
        compiled = tf.function(model.training_loss, autograph=False)
        for variance, noise in ((1.0, 0.02), (1e8, 0.02), (1e16, 0.02), (1e16, 2e-6)):
            kernel.assign(variance)
            model.likelihood.variance.assign(noise)
            for bound in (model.elbo, lambda compiled=compiled: -compiled()):
                try:
                    assert bound() <= -len(Y) * np.log(2 * np.pi * noise)
                except tf.errors.InvalidArgumentError as error:
                    refused += "mean_function=gpflow.functions.Constant" in str(error)
                    assert refused or "Cholesky" in str(error)
        assert (refused > 0) == (offset > 1e3)
    if parts is waves:
        with pytest.raises(idm.training.NonFiniteError, match="lost to rounding, as Y is too far"):
            idm.fit(model, progress=False, steps=1)
