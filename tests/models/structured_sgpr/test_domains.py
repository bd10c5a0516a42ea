"""Features on an interval in a StructuredSGPR: one pass for all parameters, rows inside alone."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern32, Matern52, SquaredExponential, White

from interdomain import fit, predict_in_batches
from interdomain import inducing_variables as iv
from interdomain.inducing_variables import VariationalFourierFeatures
from interdomain.kernels import Periodized
from interdomain.models import StructuredSGPR
from tests.conformance.helpers import assert_close
from tests.models.structured_sgpr.test_structured_sgpr import loss_and_gradients

NUM_ROWS = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (NUM_ROWS, 2))
Y = np.sin(4 * X[:, :1]) + X[:, 1:] ** 2 + 0.1 * RNG.normal(size=(NUM_ROWS, 1))
BEYOND = X.copy()
BEYOND[[7, 23, 58], [1, 1, 1]] = [2.125, -3.5, 2.25]


def one(kind: Any) -> tuple[Any, Any]:
    kernel = kind(variance=1.3, lengthscales=0.6, active_dims=[1])
    return kernel, VariationalFourierFeatures(-1.5, 2, 5)


def additive(last: Any = None, block: Any = None) -> tuple[Any, Any]:
    """Variational Fourier features for each column, and one more summand."""
    kernel = Matern32(active_dims=[0]) + Matern52(active_dims=[1], lengthscales=0.7)
    blocks = [VariationalFourierFeatures(-2, 2, 4), VariationalFourierFeatures(-1.5, 1.5, 3), block]
    return kernel + (White(0.01) if last is None else last), iv.SumInducingVariables(blocks)


def with_points() -> tuple[Any, Any]:
    """Features that depend on parameters: every evaluation is a pass."""
    return additive(SquaredExponential(0.3, lengthscales=0.5), InducingPoints(X[:3].copy()))


def make_model(parts: Any, data: Any = (X, Y), **settings: Any) -> StructuredSGPR:
    always = {"noise_variance": 0.2, "charge": "trace", "progress": False, "batch_size": 16}
    return StructuredSGPR(data, *parts, **(always | settings))


@pytest.mark.parametrize("parts", [additive, with_points])
def test_bound_and_gradients_are_those_of_gpflow(parts: Any) -> None:
    """To lengthscales, variances, noise and points; eager and compiled, at several values, and
    predictions also beyond the ends."""
    model = make_model(parts())
    sgpr = gpflow.models.SGPR((X, Y), model.kernel, model.inducing_variable)
    sgpr.likelihood = model.likelihood
    variables = sgpr.trainable_variables
    compiled = tf.function(lambda: loss_and_gradients(model, variables), autograph=False)
    for shift in (0.0, 0.3):
        for variable in variables:
            variable.assign_add(shift * tf.ones_like(variable))
        expected = loss_and_gradients(sgpr, variables)
        assert_close(loss_and_gradients(model, variables), expected, rtol=1e-7)
        assert_close(compiled(), expected, rtol=1e-7)
    assert_close(model.predict_f(BEYOND[::7]), sgpr.predict_f(BEYOND[::7]), rtol=1e-7)


def test_one_pass_serves_all_parameters(computed_rows: list[int], monkeypatch: Any) -> None:
    """No subset is needed."""
    model = make_model(additive())
    assert model.feature_parameters == {}
    before = model.elbo()
    assert sum(computed_rows) == NUM_ROWS
    computed_rows.clear()
    monkeypatch.setattr("interdomain.sums.row_batches.Rows._stored", None)
    fitted = fit(model, steps=5, progress=False, options={"subset_size": 20})
    assert fitted.subset is None and fitted.frozen == ()
    assert all(parameter.trainable for parameter in model.kernel.parameters)
    assert model.elbo() > before
    model.kernel.trainable_variables[0].assign(0.4)
    model.elbo()
    assert computed_rows == []


def test_rows_outside_are_refused() -> None:
    message = (
        r"data: 1 of 16 rows of a batch of X is outside of the interval \[-1\.5, 2\] of "
        r"VariationalFourierFeatures: column 1 goes from .* to 2\.125; build the features with a "
        r"wider one, by VariationalFourierFeatures\.from_data\.$"
    )
    with pytest.raises(ValueError, match=message):
        make_model(one(Matern52), (BEYOND, Y)).elbo()
    with pytest.raises(ValueError, match=r"data: 3 of 60 rows of X are .* from -3\.5 to 2\.25;"):
        make_model(with_points(), (BEYOND, Y)).elbo()  # whose gradient needs all rows
    model = make_model(one(Matern32))
    before = model.elbo()
    with pytest.raises(ValueError, match="rows of a batch of X is outside"):
        model.accumulate((BEYOND, Y))
    assert model.elbo() == before
    model.inducing_variable = VariationalFourierFeatures(-0.5, 2, 5)
    with pytest.raises(ValueError, match=r"outside of the interval \[-0\.5, 2\]"):
        model.elbo()


def test_float32() -> None:
    """Rows at the very ends are inside, however they are rounded."""
    features = VariationalFourierFeatures.from_data(X[:, 1], 5, margin=0.0)
    expected = make_model((Matern32(active_dims=[1]), features)).elbo()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=0.0)):
        data = X.astype(np.float32), Y.astype(np.float32)
        model = make_model((Matern32(active_dims=[1]), features), data)
        np.testing.assert_allclose(model.elbo(), expected, rtol=1e-4)


def test_rounding_at_the_ends_is_no_row_outside(recwarn: pytest.WarningsRecorder) -> None:
    """Rounding of data and of new rows is inside, for splines, products and waves of a box."""
    factors = [Matern32(lengthscales=0.8, active_dims=[d]) for d in (0, 1)]
    box = [-1.0, -1.0], [1.0, 1.0]
    waves = Periodized(Matern32(lengthscales=[0.5, 0.5]), *box)
    intervals = [VariationalFourierFeatures(-1, 1, 3) for _ in factors]
    for kernel, features in (
        (factors[0] * factors[1], iv.SplineFeatures(*box, 6, 2)),
        (factors[0] * factors[1], iv.ProductInducingVariables(intervals)),
        (waves, iv.BoxFourierFeatures.for_kernel(waves, 20)),
    ):
        rows = np.array([[-1.0, 1.0], [1.0, -1.0], [0.2, 0.3]])
        beyond, outside = rows * (1 + 1e-10), rows * (1 + 1e-7)
        model = make_model((kernel, features), (np.concatenate([X, beyond]), np.r_[Y, Y[:3]]))
        inside = make_model((kernel, features), (np.concatenate([X, rows]), np.r_[Y, Y[:3]]))
        np.testing.assert_allclose(model.elbo(), inside.elbo(), rtol=1e-7)
        expected = model.predict_f(rows)
        for predict in (
            model.predict_f,
            tf.function(model.predict_f, autograph=False),
            lambda X, model=model: predict_in_batches(model, X, progress=False),
        ):
            assert_close(predict(beyond), expected, rtol=1e-7)
        assert [w for w in recwarn if "outside of the box" in str(w.message)] == []
        with pytest.raises(ValueError, match="2 of 16 rows of a batch of X are outside"):
            model.accumulate((np.concatenate([X[:14], outside[:2]]), Y[:16]))
