"""Wrong arguments, models and data are refused, by messages that say what to pass instead."""

import functools

import gpflow
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
from gpflow.kernels import Matern32
from gpflow.likelihoods import Gaussian, MultiClass

from interdomain import fit, predict_in_batches, recommend, sample_functions, tables
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.models import DualSVGP, StructuredSGPR, VecchiaSGPR
from interdomain.training.data_checks import batches_of, check_columns
from tests.training.conftest import harmonics_svgp, orthogonal_svgp


def slices(*arrays):
    return tf.data.Dataset.from_tensor_slices(arrays)


X, Y = np.ones((6, 2)), np.ones((6, 1))
WITH_NAN = np.where(np.isin(np.arange(6), [3, 5])[:, None], np.nan, X)

EXACT, FROZEN = gpflow.models.GPR((X, Y), Matern32()), gpflow.models.GPR((X, Y), Matern32())
gpflow.set_trainable(FROZEN, False)
POINTS_OF_FOUR = np.ones((3, 4))

LARGE = slices(1e160 * X, Y)
OF_EXACT = {"model": EXACT, "optimizer": gpflow.optimizers.NaturalGradient(0.1)}

WRONG = [
    (OF_EXACT, "optimizer: .*NaturalGradient, for .* found .* for a GPR"),
    ({"model": EXACT, "data": (X, Y + 1)}, "data: a GPR holds its data, and those passed are othe"),
    ({"model": EXACT, "batch_size": 2}, "batch_size: a GPR holds its data .* found 2"),
    ({"model": FROZEN}, "model: this GPR has no trainable variables"),
    ({"options": {"ftol": 1}, "batch_size": 3}, "options: .*SVGP by minibatches has no ftol;"),
    ({"options": {"maxiter": 3}}, "options: .*has no maxiter; leave these out"),
    ({"num_inducing": 5}, "num_inducing: the data choose .* found a SVGP"),
    ({"data": None}, r"data: a SVGP holds no data, found None; pass \(X, Y\)"),
    ({"data": X}, "data: found a ndarray; pass a pair"),
    ({"data": (X, Y[:, 0])}, r"data: Y has shape \(6,\); .* Y\[:, None\]"),
    ({"data": (X, Y[:5])}, "data: X has 6 rows and Y has 5"),
    ({"data": (WITH_NAN, Y)}, "data: 1 rows have NaN or infinite numbers: 3 .*; mend them"),
    ({"batch_size": 7}, "batch_size must be an integer from 1 to 6, found 7; it is a part"),
    ({"data": slices(X, Y).batch(2), "batch_size": 2}, r"batch_size: .*dataset\.batch"),
    ({"data": slices(X, Y)}, r"elements are .*\(2,\).*\(1,\).*; pass pairs of batches X"),
    ({"data": slices(X, Y).batch(2).take(0)}, "data: the Dataset is empty"),
    ({"callbacks": 3}, "callbacks must be a function callback.step, model., or a list.* found 3"),
    ({"callbacks": [print, "bar"]}, r"callbacks\[1\] must be a function .*, found str"),
    ({"data": (X, Y[:, :0])}, "data: Y has no columns"),
    ({"data": LARGE.batch(2)}, r"data: X must be at most 4.7e\+153, .*; scale its c"),
    ({"steps": 0}, "steps must be an integer of 1 or more, found 0"),
    ({"options": {"max_seconds": 0}}, "max_seconds must be positive, found 0"),
    ({"optimizer": -0.1}, r"optimizer must be positive, found -0\.1"),
    ({"optimizer": "adam"}, "optimizer: found 'adam'; pass a learning rate .* pair"),
]


def svgp(kernel=None, inducing=X[:1], num_data=6):
    kernel = kernel or Matern32()
    return gpflow.models.SVGP(kernel, Gaussian(), inducing, num_data=num_data)


def test_wrong_arguments(monkeypatch):
    monkeypatch.setattr("interdomain.training.data_checks._ROWS_AT_ONCE", 2)
    model = svgp()
    for change, message in WRONG:
        with pytest.raises(ValueError, match=message):
            fit(**{"model": model, "data": (X, Y), "progress": False, **change})


def test_rows_that_are_no_data():
    """... for models that hold data or are given them, and for predictions, by all ways."""
    mask = np.ma.masked_array(X, mask=X * np.arange(6)[:, None] > 4)
    wrong = [
        (mask, "must be without masked entries, found 2; fill them in, or leave out the rows"),
        (X * (1 + 1j), "must be .*real numbers"),
        (1e160 * X, "must be at most .* squares of distances are finite in float64"),
        (np.full([6, 2], None), "real numbers: "),
        (np.full([6, 2], np.datetime64("2020-01-01")), "real numbers"),
        (scipy.sparse.csr_matrix(X), "real numbers"),
    ]
    structured = functools.partial(StructuredSGPR, progress=False)
    harmonics = harmonics_svgp((X, Y))
    parts = harmonics.kernel, harmonics.inducing_variable
    noisy = (X + 0.1 * np.random.default_rng(0).normal(size=X.shape), Y)
    neighbours = {"local_kernel": Matern32(), "num_neighbours": 2, "progress": False}
    held, near = structured(noisy, *parts), VecchiaSGPR(noisy, **neighbours)
    calls = {
        "fit": lambda rows: fit(svgp(), (rows, Y), steps=1, progress=False),
        "StructuredSGPR": lambda rows: structured((rows, Y), *parts).elbo(),
        "function": lambda rows: structured(lambda: iter([(rows, Y)]), *parts).elbo(),
        "DualSVGP": lambda rows: DualSVGP((rows, Y), parts[0], Gaussian(), parts[1]).elbo(),
        "VecchiaSGPR": lambda rows: VecchiaSGPR((rows, Y), **neighbours),
        "predict_f": held.predict_f,
        "of a cache": held.posterior().predict_f,
        "neighbours": near.predict_f,
        "predict_in_batches": lambda rows: predict_in_batches(held, rows),
        "of GPflow": lambda rows: predict_in_batches(svgp(), rows),
        "draws": sample_functions(harmonics, 1),
    }
    for name, call in calls.items():
        for rows, message in wrong:
            with pytest.raises(ValueError, match=message):
                call(rows)
                pytest.fail(f"{name}: {type(rows)} {rows.dtype}")
    masked_targets = np.ma.masked_array(Y, mask=np.arange(6)[:, None] > 3)
    for call in (
        lambda: fit(svgp(), (X, masked_targets), steps=1, progress=False),
        lambda: structured((X, masked_targets), *parts),
        lambda: predict_in_batches(svgp(), X, Y=masked_targets, method="predict_log_density"),
        lambda: tables.fit_additive((X, masked_targets)),
        lambda: recommend(X, masked_targets),
    ):
        with pytest.raises(ValueError, match="Y must be without masked entries, found 2"):
            call()


def test_rows_in_other_types():
    """Objects, long doubles and what is like an array are the same rows as floats."""
    rows, targets = np.random.default_rng(0).normal(size=(2, 6, 1))
    points, held, given = rows[:2].copy(), svgp(inducing=rows[:2].copy()), []
    kinds = [(float, np.asarray), (object, np.asarray), (np.longdouble, np.asarray)]
    for kind, convert in (*kinds, (float, tf.constant)):
        data = convert(rows.astype(kind)), convert(targets.astype(kind))
        model = StructuredSGPR(data, Matern32(), points, progress=False)
        found = [model.elbo(), *model.predict_f(data[0]), *predict_in_batches(held, data[0])]
        given.append(found)
        given[-1].extend(batches_of(held, data, batch_size=None, seed=0).batch(0))
        assert given[-1][-1].dtype == tf.float64
    for found in given[1:]:
        for one, other in zip(found, given[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_num_data():
    """Full batches need none; with minibatches the ELBO would be wrong without a sign of it."""
    missing = r"model\.num_data: found None.*num_data="
    for number, data, size, message in [
        (None, (X, Y), 2, f"{missing}6"),
        (None, slices(X, Y).batch(2), None, f"{missing}the number of training rows"),
        (60, (X, Y), 2, "num_data: found 60, but the data have 6 rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(svgp(num_data=number), data, batch_size=size)
    for model in (svgp(num_data=None), EXACT):  # which may be given the data that it holds
        assert fit(model, (X.copy(), Y), steps=1, progress=False).steps == 1


# Models and data that do not fit each other: the columns of X and of Y.


def test_misfits():
    """One short message, whatever the model; kernels of some columns fit."""
    harmonics, four = harmonics_svgp((X, Y)), Matern32(lengthscales=np.ones(4))
    classes = harmonics_svgp((X, Y), MultiClass(3), num_latent_gps=2)
    wrong = "num_latent_gps must be 3 for MultiClass, found 2; build the model with that"
    weights = "X must have 2 columns, one for each entry of weight_variances, found 3"
    sees = "the kernel sees 3 columns of Xnew, but the inducing variable has dimension 3"
    fit_none = "data: X has 2 columns, which do not fit InducingPoints and Matern32"
    no_covariance = svgp(inducing=SphericalHarmonics(3, [0, 1]))
    for model, columns, text in (
        (svgp(inducing=POINTS_OF_FOUR), (2, 1), "data: X has 2 .* pass X with 4 columns"),
        (svgp(four), (2, 1), fit_none),
        (no_covariance, (2, 1), "kernel: there is no covariance"),
        (harmonics, (3, 1), weights),
        (orthogonal_svgp((X, Y)), (3, 1), sees),
        (harmonics, (2, 3), "data: Y has 3 .* take 1;"),
        (classes, (2, 1), wrong),
    ):
        with pytest.raises(ValueError, match=text) as caught:
            check_columns(model, columns)
        assert len(str(caught.value)) < 300
        assert "{{" not in str(caught.value) and "\n" not in str(caught.value)
    some = svgp(Matern32(active_dims=[0, 2]), np.ones((2, 3)))
    for columns in ((3, 1), (None, None)):
        check_columns(some, columns)


def test_misfits_are_found_before_anything_is_compiled(monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("something was compiled")

    for module in ("lbfgs", "gradient_steps"):
        monkeypatch.setattr(f"interdomain.training.{module}.compiled", never)
    other = svgp(inducing=POINTS_OF_FOUR)
    for model, data, arguments, text in (
        (other, (X, Y), {"batch_size": 5}, "X has 2 columns, which do not fit InducingPoints"),
        (other, slices(X, Y).batch(5), {}, "X has 2 columns, which do not fit InducingPoints"),
        (gpflow.models.GPR((X, Y), Matern32(1, np.ones(4))), None, {}, "do not fit Matern32; bui"),
    ):
        with pytest.raises(ValueError, match=text):
            fit(model, data, steps=1, progress=False, **arguments)
