"""StructuredSGPR against GPflow's SGPR: every family, any batches, compiled or not."""

import pickle
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.kernels import Kernel

import interdomain as idm
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.linalg import precision
from interdomain.models import StructuredSGPR
from tests.conformance.cases import ONE_OF_EACH_KIND, Case
from tests.conformance.helpers import assert_close, make_data, make_inputs
from tests.parts import frozen, with_harmonics
from tests.posteriors.graph_ops import graph_nodes

NUM_ROWS, NUM_COLUMNS = 41, 2
Parts = tuple[Kernel, Any]


def make_rows(num_outputs: int = 1, num_rows: int = NUM_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(num_rows, NUM_COLUMNS))
    directions = rng.normal(size=(NUM_COLUMNS, num_outputs))
    return X, np.sin(2 * X @ directions) + 0.1 * rng.normal(size=(num_rows, num_outputs))


def harmonics() -> Parts:
    kernel = idm.kernels.SphericalMatern32(weight_variances=[0.6, 1.4], lengthscale=0.8)
    return with_harmonics(kernel, 3, NUM_COLUMNS)


def points() -> Parts:
    kernel = gpflow.kernels.Matern32(lengthscales=[0.9, 1.3])
    Z = np.random.default_rng(1).normal(size=(9, NUM_COLUMNS))
    return kernel, gpflow.inducing_variables.InducingPoints(Z)


def make_pair(
    parts: Parts, data: Any, streamed: Any = None, **arguments: Any
) -> tuple[gpflow.models.SGPR, StructuredSGPR]:
    """GPflow's model and ours, with the same parameters."""
    mean_function = arguments.pop("mean_function", None)
    sgpr = gpflow.models.SGPR(data, *parts, noise_variance=0.2, mean_function=mean_function)
    arguments |= {"likelihood": sgpr.likelihood, "mean_function": sgpr.mean_function}
    arguments |= {"charge": "trace", "progress": False}
    return sgpr, StructuredSGPR(data if streamed is None else streamed, *parts, **arguments)


def loss_and_gradients(model: Any, variables: Any) -> list[tf.Tensor]:
    with disable_check_shapes(), tf.GradientTape() as tape:  # it takes most of the time
        loss = model.training_loss()
    gradients = tape.gradient(loss, variables, unconnected_gradients="zero")
    return [tf.convert_to_tensor(value) for value in (loss, *gradients)]


def assert_same_model(model: StructuredSGPR, sgpr: gpflow.models.SGPR, X: np.ndarray) -> None:
    """Bound, gradients, q(u) and predictions."""
    variables = sgpr.trainable_variables
    assert_close(loss_and_gradients(model, variables), loss_and_gradients(sgpr, variables))
    with disable_check_shapes():
        assert_close(model.compute_qu(), sgpr.compute_qu())
        assert_close(model.predict_f(X), sgpr.predict_f(X))
        expected = sgpr.predict_f(X, full_cov=True)
        assert_close(model.posterior().predict_f(X, full_cov=True), expected)
        svgp = model.to_svgp()  # for minibatches to go on
        assert type(svgp) is gpflow.models.SVGP and svgp.num_data == len(sgpr.data[0])
        assert_close(svgp.predict_f(X, full_cov=True), expected)
        assert_close([svgp.elbo(sgpr.data)], [sgpr.elbo()])


@pytest.mark.parametrize("case", ONE_OF_EACH_KIND[2:4], ids=lambda case: case.kind)
def test_operators_of_blocks_and_of_low_rank(case: Case) -> None:
    """Two outputs, batches of five for 13 rows, more inducing variables than rows in most."""
    sgpr, model = make_pair(case.build(), make_data(case, 2), batch_size=5)
    variables = sgpr.trainable_variables
    assert_close(loss_and_gradients(model, variables), loss_and_gradients(sgpr, variables))
    X = make_inputs(case, 4)
    with disable_check_shapes():
        assert_close(model.predict_f(X), sgpr.predict_f(X))
        assert_close(model.to_svgp().predict_f(X), sgpr.predict_f(X))


LINEAR = gpflow.mean_functions.Linear(np.array([[0.2, 0.1], [-0.3, 0.5]]))
POLYNOMIAL = gpflow.mean_functions.Polynomial(2, NUM_COLUMNS, 2)
PAIRS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "points": (points, make_rows(2), {"batch_size": 20}),
    "one row": (harmonics, make_rows(1, 1), {}),
    "linear mean": (harmonics, make_rows(2), {"batch_size": 20, "mean_function": LINEAR}),
    "polynomial mean": (harmonics, make_rows(2), {"mean_function": POLYNOMIAL}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_bound_q_and_predictions(name: str) -> None:
    parts, data, arguments = PAIRS[name]
    sgpr, model = make_pair(parts(), data, **arguments)
    assert_same_model(model, sgpr, make_rows()[0][:4])
    # Where the mean is linear in its parameters they are none of the features'.
    known = any("mean_function" in path for path in model.feature_parameters)
    assert known == (name == "polynomial mean")


def operations(step: Any) -> set[str]:
    return {node.op for node in graph_nodes(step.get_concrete_function().graph)}


def test_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiled function without loops, called at values of the features' parameters that it has
    not seen; with too many features for TensorFlow's own factorisation; with too many to be kept.
    """
    sgpr, model = make_pair(harmonics(), make_rows(), batch_size=20)
    variables = sgpr.trainable_variables

    def compiled() -> Any:
        return tf.function(lambda: loss_and_gradients(model, variables), autograph=False)

    step = compiled()
    for shift in (0.0, 0.3):
        for variable in variables:
            variable.assign_add(shift * tf.ones_like(variable))
        expected = loss_and_gradients(sgpr, variables)
        assert_close(step(), expected)
    # An optimiser may try values without finite features: the loss is NaN, for it to reject.
    scales = model.kernel.weight_variances
    before = scales.numpy()
    scales.assign([1e308, 1.0])
    assert np.isnan(step()[0])
    scales.assign(before)
    assert_close(step(), expected)
    assert not operations(step) & {"While", "StatelessWhile", "If", "StatelessIf"}
    assert "Cholesky" in operations(step)
    monkeypatch.setattr(precision, "MOST_ROWS", 1)
    large = compiled()
    assert "Cholesky" not in operations(large)
    assert_close(large(), expected)
    monkeypatch.setattr("interdomain.sums.current.MOST_NUMBERS", 1)
    with pytest.raises(ValueError, match="with at most 1 numbers of features"):
        compiled()()


def test_statistics_are_never_stale() -> None:
    """Frozen parameters that are changed by hand, in eager and in compiled functions: these say so,
    and go on once the sums have been taken."""
    sgpr, model = make_pair(harmonics(), make_rows(), batch_size=20)
    frozen(*model.feature_parameters.values())
    compiled = tf.function(model.training_loss, autograph=False)
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.VARIABLE)
    predict, X = tf.function(posterior.predict_f, autograph=False), make_rows()[0][:3]
    assert_close(predict(X), sgpr.predict_f(X))
    assert_close([compiled()], [sgpr.training_loss()])
    parameter = model.kernel.bias_variance
    parameter.assign(2 * parameter)
    with pytest.raises(tf.errors.OpError, match="is 1 in one and 2 .* Evaluate model"):
        compiled()
    assert_close([model.training_loss()], [sgpr.training_loss()])
    posterior.update_cache()
    assert_close(predict(X), sgpr.predict_f(X))
    assert_close([posterior.q_mu], [model.posterior(None).q_mu])
    assert_close([compiled()], [sgpr.training_loss()])
    # A second fit takes them by itself.
    for factor in (1.0, 0.5):
        parameter.assign(factor * parameter)
        idm.fit(model, steps=2, progress=False)
    assert_close([model.training_loss()], [sgpr.training_loss()])


def test_other_parameters_in_the_place_of_the_old() -> None:
    """A parameter that is replaced, an inducing variable that is replaced."""
    sgpr, model = make_pair(harmonics(), make_rows(), batch_size=20)
    frozen(*model.feature_parameters.values())
    compiled = tf.function(model.training_loss, autograph=False)
    compiled()
    model.kernel.weight_variances = gpflow.Parameter([0.3, 0.9], trainable=False)
    assert_close([model.training_loss()], [sgpr.training_loss()])
    with pytest.raises(tf.errors.OpError, match="compile it again"):
        compiled()
    fewer = SphericalHarmonics.for_kernel(model.kernel, NUM_COLUMNS, 2)
    sgpr.inducing_variable = model.inducing_variable = fewer
    assert_close([model.training_loss()], [sgpr.training_loss()])


def test_a_model_of_statistics_alone() -> None:
    data = make_rows(2)
    kernel, iv = harmonics()
    frozen(kernel.weight_variances, kernel.bias_variance)
    _, with_rows = make_pair((kernel, iv), data)
    sgpr, model = make_pair((kernel, iv), data, with_rows.statistics)
    assert_same_model(model, sgpr, data[0][:4])
    compiled = tf.function(model.training_loss, autograph=False)
    assert_close([compiled()], [sgpr.training_loss()])
    kernel.bias_variance.assign(3.0)
    for evaluate, error in ((compiled, tf.errors.OpError), (model.training_loss, ValueError)):
        with pytest.raises(error, match="kernel.bias_variance is 1 in one and 3"):
            evaluate()
    gpflow.set_trainable(kernel.bias_variance, True)
    kernel.bias_variance.assign(1.0)
    with pytest.raises(ValueError, match=r"on kernel.bias_variance, trainable.*set_trainable"):
        model.training_loss()


def test_float32() -> None:
    """The bound is a difference of large numbers: it is summed up in float64."""
    X, Y = make_rows(1, 2_000)
    expected = make_pair(harmonics(), (X, Y))[1].elbo()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=0.0)):
        data = X.astype(np.float32), Y.astype(np.float32)
        _, model = make_pair(harmonics(), data, batch_size=500)
        step = tf.function(loss_and_gradients, autograph=False)
        results = loss_and_gradients(model, model.trainable_variables)
        compiled = step(model, model.trainable_variables)
        predictions = model.predict_f(data[0][:5])
    assert {value.dtype for value in (*results, *compiled)} == {tf.float32}
    assert predictions[0].dtype == tf.float32
    np.testing.assert_allclose(-results[0], expected, rtol=1e-5)
    np.testing.assert_allclose(-compiled[0], expected, rtol=1e-5)


@pytest.mark.parametrize("parts", [harmonics, points])
def test_the_charge_by_logarithm(parts: Callable[[], Parts]) -> None:
    """Between that of the trace and the one of each row, which is below the evidence; of a linear
    mean and two outputs, whose q is the same. Nothing is charged for a prior of finite rank."""
    (kernel, inducing_variable), data = parts(), make_rows(2)
    mean = gpflow.mean_functions.Linear(np.ones((2, 2)), np.zeros(2))
    arguments: dict[str, Any] = {"noise_variance": 0.2, "mean_function": mean}
    trace, log = (
        StructuredSGPR(data, kernel, inducing_variable, charge=charge, **arguments)
        for charge in ("trace", "log")
    )
    exact = gpflow.models.GPR(data, kernel, **arguments).log_marginal_likelihood()
    explained = idm.kernels.FiniteRank(kernel, inducing_variable)
    left = (kernel(data[0], full_cov=False) - explained(data[0], full_cov=False)).numpy() / 0.2
    row_bound = trace.elbo() + np.sum(left - np.log1p(left))  # twice a half, of two outputs
    assert trace.elbo() < log.elbo() < row_bound < exact
    expected = trace.elbo() + np.sum(left) - NUM_ROWS * np.log1p(np.mean(left))
    np.testing.assert_allclose(log.elbo(), expected, rtol=1e-6)
    assert_close(log.predict_f(data[0]), trace.predict_f(data[0]))
    assert log.model_of(data).charge == "log"
    bounds = [
        StructuredSGPR(data, explained, inducing_variable, charge=charge, **arguments).elbo()
        for charge in ("trace", "log")
    ]
    assert bounds[0] == bounds[1]


def test_copies(tmp_path: Any) -> None:
    """They go their own way; the rows travel with a pickle; checkpoints hold the parameters."""
    sgpr, model = make_pair(harmonics(), make_rows(), batch_size=20)
    bound = model.elbo()
    copied = gpflow.utilities.deepcopy(model)
    unpickled = pickle.loads(pickle.dumps(model))
    assert unpickled.inducing_variable.degrees == model.inducing_variable.degrees
    path = tf.train.Checkpoint(model=model).save(str(tmp_path / "model"))
    for changed in (copied, unpickled):
        changed.kernel.weight_variances.assign([2.0, 2.0])
    assert model.elbo() == bound
    sgpr.kernel.weight_variances.assign([2.0, 2.0])
    assert_close([copied.elbo(), unpickled.elbo()], [sgpr.elbo(), sgpr.elbo()])
    tf.train.Checkpoint(model=model).restore(path).assert_existing_objects_matched()
    assert model.elbo() == bound
