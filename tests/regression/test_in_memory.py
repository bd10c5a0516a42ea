"""The subset of a model: one graph without loops, and the values of streamed passes."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.mean_functions import Polynomial

import interdomain as idm
from interdomain.linalg import precision
from interdomain.models import StructuredSGPR

NUM_ROWS, NUM_COLUMNS = 60, 2


def make_model(mean_function: Any = None, num_rows: int = NUM_ROWS) -> StructuredSGPR:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(num_rows, NUM_COLUMNS))
    Y = np.sin(2 * X @ rng.normal(size=(NUM_COLUMNS, 2))) + 0.1 * rng.normal(size=(num_rows, 2))
    X[3], Y[5] = np.nan, np.inf  # left out of every subset
    dtype = gpflow.default_float()
    kernel = idm.kernels.SphericalMatern32(weight_variances=[0.6, 1.4], lengthscale=0.8)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, NUM_COLUMNS, 3)
    return StructuredSGPR(
        (X.astype(dtype), Y.astype(dtype)),
        kernel,
        harmonics,
        mean_function=mean_function,
        noise_variance=0.2,
        on_invalid="skip",
        progress=False,
    )


def streamed(subset: StructuredSGPR) -> StructuredSGPR:
    """A model of the same rows that reads them a batch at a time."""
    return StructuredSGPR(
        subset._provider.subset(10**6, 0),
        subset.kernel,
        subset.inducing_variable,
        mean_function=subset.mean_function,
        likelihood=subset.likelihood,
        batch_size=7,
        progress=False,
    )


def loss_and_gradients(model: StructuredSGPR) -> list[Any]:
    with tf.GradientTape() as tape:
        loss = model.training_loss()
    return [loss, *tape.gradient(loss, model.trainable_variables)]


def step_of(model: StructuredSGPR) -> Callable[[], Any]:
    return tf.function(lambda: loss_and_gradients(model), autograph=False)


def operations(step: Any) -> set[str]:
    """Of a compiled function and of those that it calls."""
    definition = step.get_concrete_function().graph.as_graph_def()
    nodes = [node for f in definition.library.function for node in f.node_def]
    return {node.op for node in (*definition.node, *nodes)}


def assert_same(found: Any, expected: Any, rtol: float = 1e-9) -> None:
    for a, b in zip(found, expected, strict=True):
        a, b = np.asarray(tf.convert_to_tensor(a)), np.asarray(tf.convert_to_tensor(b))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.max(np.abs(b)))


def test_a_subset_has_the_bound_and_gradients_of_gpflow() -> None:
    """Those of a mean function of unknown form, which counts among the features, included."""
    subset = make_model(Polynomial(2, 2, 2)).subset_model(40, seed=1)
    step, passes = step_of(subset), streamed(subset)
    assert not operations(step) & {"While", "StatelessWhile", "If", "StatelessIf"}
    for shift in (0.0, 0.3):  # values of the features that the graph was not made at
        for variable in subset.trainable_variables:
            variable.assign_add(shift * tf.ones_like(variable))
        assert_same(step(), loss_and_gradients(passes))


def test_float32() -> None:
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-4)):
        subset = make_model().subset_model(40)
        assert_same(step_of(subset)(), loss_and_gradients(streamed(subset)), rtol=1e-4)


def test_subsets_of_all_sizes_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with too many features to be kept are refused; those with too many for TensorFlow's own
    factorisation."""
    subset = make_model().subset_model(40)
    expected = step_of(subset)()
    with monkeypatch.context() as patch:
        patch.setattr("interdomain.regression.provider.MOST_NUMBERS", 1)
        with pytest.raises(ValueError, match="with at most 1 numbers of features"):
            step_of(subset)()
    monkeypatch.setattr(precision, "MOST_ROWS", 1)
    step = step_of(subset)
    assert "Cholesky" not in operations(step)
    assert_same(step(), expected)


def test_rows_may_come_and_values_may_be_none() -> None:
    subset = make_model().subset_model(40)
    step = tf.function(subset.training_loss, autograph=False)
    expected = step()
    weights = subset.kernel.weight_variances
    before = weights.numpy()
    weights.assign([1e308, 1.0])
    assert np.isnan(step())  # for an optimiser to reject
    weights.assign(before)
    np.testing.assert_allclose(step(), expected, rtol=1e-9)
    subset.extend((np.ones((3, 2)), np.ones((3, 2))))
    with pytest.raises(tf.errors.OpError, match="compile it again"):
        step()
    np.testing.assert_allclose(subset.elbo(), streamed(subset).elbo(), rtol=1e-9)


def test_a_bound_that_cannot_be_factorised_is_an_error() -> None:
    """A finite B that is not positive definite; not a NaN that would look like overflow."""
    arguments = [tf.constant(v, tf.float64) for v in ([1.0, 1.0], [[1.0, 9.0], [9.0, 1.0]])]
    arguments += [tf.ones([2, 1], tf.float64), tf.constant(1.0, tf.float64)]
    terms = tf.function(
        lambda *a: precision.precision_terms(*a, gram_gradient=True), autograph=False
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not"):
        terms(*arguments)


def test_other_features_and_another_kernel_for_the_subset() -> None:
    """Input scales from a few harmonics, for a model of many: parameters are shared."""
    model = make_model()
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(model.kernel, NUM_COLUMNS, 1)
    subset = model.subset_model(40, seed=3, inducing_variable=few)
    assert subset.inducing_variable is few and subset.kernel is model.kernel
    assert subset.likelihood is model.likelihood and subset.mean_function is model.mean_function
    assert model._provider._features is None  # the many were not even traced
    # The same rows, of whatever features.
    drawn = [
        np.asarray(rows)
        for of in (subset, model.subset_model(40, seed=3))
        for rows in of._provider.subset(100, 0)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[2])
    np.testing.assert_array_equal(drawn[1], drawn[3])
    other = idm.kernels.SphericalMatern52(weight_variances=np.ones(2))
    other.weight_variances = model.kernel.weight_variances
    subset = model.subset_model(40, kernel=other)
    assert subset.kernel is other
    assert set(subset.feature_parameters) == {"kernel.weight_variances", "kernel.bias_variance"}
    with pytest.raises(ValueError, match=r"kernel"):
        model.subset_model(40, kernel="Matern")  # type: ignore[arg-type]
