"""Wrong arguments, models and data are refused, by messages that say what to pass instead."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32
from gpflow.likelihoods import Gaussian, MultiClass

from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from interdomain.training import fit
from interdomain.training.data import check_columns


def slices(*arrays):
    return tf.data.Dataset.from_tensor_slices(arrays)


X, Y = np.ones((6, 2)), np.ones((6, 1))
WITH_NAN = np.where(np.arange(6)[:, None] == 4, np.nan, X)

WRONG = [
    (
        {"options": {"ftol": 1}, "batch_size": 3},
        r"options: found .*; they are for L-BFGS",
    ),
    ({"options": {"maxiter": 3}}, r"options: found \{'maxiter': 3\}; .* Pass .* as steps"),
    ({"data": None}, r"data: a SVGP holds no data, found None; pass \(X, Y\)"),
    ({"data": X}, r"data: found a ndarray of shape \(6, 2\); pass a pair"),
    ({"data": (X, Y[:, 0])}, r"data: Y has shape \(6,\); .* Y\[:, None\]"),
    ({"data": (X, Y[:5])}, "data: X has 6 rows and Y has 5"),
    ({"data": (X[:0], Y[:0])}, "data: X and Y have no rows"),
    ({"data": (WITH_NAN, Y)}, "data: X has NaN or infinity in 1 of 6 rows, the first is row 4"),
    ({"batch_size": 7}, "batch_size must be an integer from 1 to 6, found 7; it is a part"),
    (
        {"data": slices(X, Y).batch(2), "batch_size": 2},
        r"batch_size: .*dataset\.batch",
    ),
    ({"data": slices(X, Y)}, r"elements are .*\(2,\).*\(1,\).*; pass pairs of batches X"),
    ({"data": slices(X).batch(2)}, "elements are .*pass pairs of batches"),
    ({"data": slices(X, Y).batch(2).take(0)}, "data: the Dataset is empty"),
    ({"steps": 0}, "steps must be an integer of 1 or more, found 0"),
    ({"every": 0}, "every must be .* found 0"),
    ({"max_seconds": 0}, "max_seconds must be positive, found 0"),
    ({"resume": True}, "checkpoint_dir must be given to resume from, found None"),
    ({"optimizer": -0.1}, r"optimizer must be positive, found -0\.1"),
    ({"optimizer": "adam"}, "optimizer: found 'adam'; pass a learning rate"),
    (
        {"optimizer": gpflow.optimizers.NaturalGradient(0.1)},
        "optimizer: found a NaturalGradient; pass natural_gradient=gamma",
    ),
    (
        {"callbacks": [lambda step, model: 3], "steps": 1},
        "callbacks: a callback must return a mapping .* returned 3",
    ),
]


def svgp(num_data=6, **arguments):
    return gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(),
        X[:1].copy(),
        num_data=num_data,
        **arguments,
    )


def test_wrong_arguments():
    model = svgp()
    for change, message in WRONG:
        with pytest.raises(ValueError, match=message):
            fit(**{"model": model, "data": (X, Y), "progress": False, **change})


def test_wrong_models():
    exact = gpflow.models.GPR((X, Y), gpflow.kernels.SquaredExponential())
    for model, change, message in [
        (object(), {}, "model: a object is neither"),
        (exact, {"natural_gradient": 0.1}, "natural_gradient: a GPR has neither"),
        (exact, {"data": (X, Y + 1)}, "data: a GPR holds its data, and those passed are others"),
        (exact, {"batch_size": 2}, "batch_size: a GPR holds its data .* found 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(model, **change)


def test_num_data():
    """Full batches need none; with minibatches the ELBO would be wrong without a sign of it."""
    missing = r"model\.num_data: found None.*num_data="
    for number, data, size, message in [
        (None, (X, Y), 2, f"{missing}6"),
        (None, slices(X, Y).batch(2), None, f"{missing}the number of training rows"),
        (60, (X, Y), None, "num_data: found 60, but the data have 6 rows"),
        (60, (X, Y), 2, "num_data: found 60, but the data have 6 rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(svgp(num_data=number), data, batch_size=size)
    assert fit(svgp(num_data=None), (X, Y), steps=1, progress=False).steps == 1


def test_nothing_to_train():
    model = svgp()
    gpflow.set_trainable(model, False)
    for optimizer in (0.01, None):
        with pytest.raises(ValueError, match="model: this SVGP has no trainable variables"):
            fit(model, (X, Y), optimizer=optimizer)


# Models and data that do not fit each other.

X3 = np.random.default_rng(0).normal(size=(20, 3))
Y3 = X3[:, :1]


def sphere(columns):
    return SphericalMatern32(weight_variances=np.ones(columns))


def harmonics(columns):
    return SphericalHarmonics.for_kernel(sphere(columns), columns, max_degree=1)


def points(columns):
    return InducingPoints(X3[:4, :1] + np.arange(columns))


def svgp_of(kernel, inducing, likelihood=None, **options):
    likelihood = likelihood or Gaussian()
    return gpflow.models.SVGP(kernel, likelihood, inducing, num_data=len(X3), **options)


MISFITS = [
    (lambda: svgp_of(Matern32(), points(4)), Y3, "data: X has 3 .* pass X with 4 columns"),
    (
        lambda: svgp_of(Matern32(lengthscales=np.ones(4)), points(3)),
        Y3,
        r"data: X has 3 columns, which do not fit InducingPoints and Matern32",
    ),
    (lambda: svgp_of(Matern32(), harmonics(3)), Y3, "kernel: there is no covariance betw"),
    (
        lambda: AdditiveSVGP(
            gpflow.kernels.Sum([sphere(4)]),
            Gaussian(),
            SumInducingVariables([harmonics(4)]),
            num_data=len(X3),
        ),
        Y3,
        "X must have 4 columns, one for each entry of weight_variances, found 3",
    ),
    (
        lambda: OrthogonalSVGP(
            SphericalMatern32(), Gaussian(), harmonics(4), points(4), num_data=len(X3)
        ),
        Y3,
        "the kernel sees 3 columns of Xnew, but the inducing variable has dimension 5",
    ),
    (lambda: svgp_of(sphere(3), harmonics(3)), np.hstack([Y3] * 3), "data: Y has 3 .* take 1;"),
    (
        lambda: svgp_of(sphere(3), harmonics(3), MultiClass(3), num_latent_gps=2),
        Y3,
        "num_latent_gps must be 3 for MultiClass, found 2; build the model with that",
    ),
]


def test_misfits():
    """One short message, whatever the model; kernels of some columns fit."""
    for make, outputs, text in MISFITS:
        with pytest.raises(ValueError, match=text) as caught:
            check_columns(make(), (X3.shape[1], outputs.shape[1]))
        assert len(str(caught.value)) < 300
        assert "{{" not in str(caught.value) and "\n" not in str(caught.value)
    for kernel, inducing in (Matern32, points), (SphericalMatern32, harmonics):
        model = svgp_of(kernel(active_dims=[0, 2]), inducing(3 if inducing is points else 2))
        check_columns(model, (3, 1))
        check_columns(model, (None, None))


def test_misfits_are_found_before_anything_is_compiled(monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("something was compiled")

    monkeypatch.setattr("interdomain._tracing.compiled", never)
    for data, arguments in (
        ((X3, Y3), {}),
        ((X3, Y3), {"batch_size": 5}),
        (slices(X3, Y3).batch(5), {}),
    ):
        with pytest.raises(ValueError, match="X has 3 columns, which do not fit InducingPoints"):
            fit(svgp_of(Matern32(), points(4)), data, steps=1, progress=False, **arguments)
    for model, text in {
        gpflow.models.GPR((X3, Y3), Matern32(lengthscales=np.ones(4))): "do not fit Matern32; bui",
        gpflow.models.SGPR((X3, Y3), Matern32(), points(4)): "pass X with 4 columns",
    }.items():
        with pytest.raises(ValueError, match=text):
            fit(model, steps=1, progress=False)
