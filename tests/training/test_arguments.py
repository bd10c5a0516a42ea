"""Each wrong argument is refused, by a message that names it and what to pass instead."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.training import fit


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


def test_num_data_missing():
    """Full batches need none; with minibatches the ELBO would be wrong without a sign of it."""
    for data, size, remedy in [
        ((X, Y), 2, "num_data=6"),
        (slices(X, Y).batch(2), None, "num_data=the number of training rows"),
    ]:
        with pytest.raises(ValueError, match=rf"model\.num_data: found None.*{remedy}"):
            fit(svgp(num_data=None), data, batch_size=size)
    assert fit(svgp(num_data=None), (X, Y), steps=1, progress=False).steps == 1


def test_num_data_of_other_data():
    for size in (None, 2):
        with pytest.raises(ValueError, match="num_data: found 60, but the data have 6 rows"):
            fit(svgp(num_data=60), (X, Y), batch_size=size)


def test_nothing_to_train():
    model = svgp()
    gpflow.set_trainable(model, False)
    for optimizer in (0.01, None):
        with pytest.raises(ValueError, match="model: this SVGP has no trainable variables"):
            fit(model, (X, Y), optimizer=optimizer)
