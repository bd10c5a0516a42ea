"""Each wrong argument is refused, by a message that names it and what to pass instead."""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.keras import tf_keras

from interdomain.training import fit


def slices(*arrays):
    return tf.data.Dataset.from_tensor_slices(arrays)


X, Y = np.ones((6, 2)), np.ones((6, 1))
WITH_NAN = np.where(np.arange(6)[:, None] == 4, np.nan, X)

WRONG = {
    "method": ({"method": "sgd"}, r"method: found 'sgd'; pass 'l-bfgs' or 'adam'"),
    "batch_size with L-BFGS": (
        {"method": "l-bfgs", "batch_size": 3},
        r"batch_size: L-BFGS .* found 3 .*leave batch_size out",
    ),
    "optimizer with L-BFGS": (
        {"method": "l-bfgs", "natural_gradient": 0.1},
        r"natural_gradient: L-BFGS .* found 0\.1 .*pass method='adam'",
    ),
    "options with Adam": (
        {"method": "adam", "options": {"ftol": 1}},
        r"options: .* found \{'ftol': 1\} with method='adam'",
    ),
    "maxiter": ({"options": {"maxiter": 3}}, r"options: found maxiter=3; pass .* steps"),
    "no data": ({"data": None}, r"data: a SVGP holds no data, found None; pass \(X, Y\)"),
    "X alone": ({"data": X}, r"data: found a ndarray of shape \(6, 2\); pass a pair"),
    "vector Y": ({"data": (X, Y[:, 0])}, r"data: Y has shape \(6,\); .* Y\[:, None\]"),
    "lengths": ({"data": (X, Y[:5])}, "data: X has 6 rows and Y has 5"),
    "no rows": ({"data": (X[:0], Y[:0])}, "data: X and Y have no rows"),
    "NaN in X": (
        {"data": (WITH_NAN, Y)},
        "data: X has NaN or infinity in 1 of 6 rows, the first is row 4",
    ),
    "infinity in Y": ({"data": (X, Y * np.inf)}, "data: Y has NaN or infinity in 6 of 6 rows"),
    "batch_size too large": (
        {"batch_size": 7},
        "batch_size must be an integer from 1 to 6, found 7; it is a part",
    ),
    "batch_size zero": ({"batch_size": 0}, "batch_size must be an integer from 1 to 6, found 0"),
    "batch_size of a Dataset": (
        {"data": slices(X, Y).batch(2), "batch_size": 2},
        r"batch_size: a Dataset is used as given, found 2; .*dataset\.batch",
    ),
    "unbatched Dataset": ({"data": slices(X, Y)}, r"shapes \(2,\) and \(1,\); pass batches"),
    "Dataset of X": ({"data": slices(X).batch(2)}, "elements are .*pass a Dataset of pairs"),
    "empty Dataset": ({"data": slices(X, Y).batch(2).take(0)}, "data: the Dataset is empty"),
    "empty Dataset, L-BFGS": (
        {"data": slices(X, Y).batch(2).take(0), "method": "l-bfgs"},
        "data: the Dataset is empty",
    ),
    "endless Dataset, L-BFGS": (
        {"data": slices(X, Y).batch(2).repeat(), "method": "l-bfgs"},
        r"data: .* never ends; take away \.repeat",
    ),
    "steps": ({"steps": 0}, "steps must be an integer of 1 or more, found 0"),
    "fractional steps": ({"steps": 1.5}, "steps must be an integer of 1 or more, found 1.5"),
    "seed": ({"seed": -1}, "seed must be an integer of 0 or more, found -1"),
    "callback_every": ({"callback_every": 0}, "callback_every must be .* found 0"),
    "checkpoint_every": (
        {"checkpoint_every": 0, "checkpoint_dir": "unused"},
        "checkpoint_every must be .* found 0",
    ),
    "checkpoint_every alone": (
        {"checkpoint_every": 5},
        "checkpoint_dir: found None with checkpoint_every=5",
    ),
    "resume alone": ({"resume": True}, "checkpoint_dir: found None .* resume=True"),
    "two learning rates": (
        {"optimizer": tf_keras.optimizers.Adam(), "learning_rate": 0.1},
        r"learning_rate: found 0\.1 beside an optimizer",
    ),
    "learning rate": (
        {"learning_rate": -0.1},
        r"learning_rate must be positive, found -0\.1",
    ),
    "not an optimizer": ({"optimizer": "adam"}, "optimizer: found 'adam'; pass an instance"),
    "NaturalGradient as optimizer": (
        {"optimizer": gpflow.optimizers.NaturalGradient(0.1)},
        "optimizer: found a NaturalGradient; pass natural_gradient=gamma",
    ),
    "natural_gradient": (
        {"natural_gradient": 2.0},
        r"natural_gradient: found a step size of 2\.0; pass a number in \(0, 1\]",
    ),
    "natural_gradient's kind": (
        {"natural_gradient": "large"},
        "natural_gradient must be a number of real numbers, found 'large'",
    ),
    "alternate alone": (
        {"alternate": True, "natural_gradient": False},
        r"alternate: .* found natural_gradient=False; leave it out, or pass natural_gradient=True",
    ),
    "alternate": ({"alternate": 1, "natural_gradient": 0.1}, "alternate must be True or False"),
    "callback's return": (
        {"callbacks": [lambda step, model: 3], "steps": 1},
        "callbacks: a callback must return a mapping .* returned 3",
    ),
}


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
    for change, message in WRONG.values():
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
    for method in ("adam", "l-bfgs"):
        with pytest.raises(ValueError, match="model: this SVGP has no trainable variables"):
            fit(model, (X, Y), method=method)


def test_unused_parameter_is_named(make_line):
    for method in ("adam", "l-bfgs"):
        model = make_line()
        model.unused = gpflow.Parameter(np.ones(3), name="unused")
        with pytest.raises(ValueError, match=r"variables unused of shape \(3,\); exclude their"):
            fit(model, (X, Y), method=method, progress=False)
