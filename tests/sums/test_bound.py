"""The closed form of the collapsed bound and of its optimal q, against TensorFlow's Cholesky."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp

from interdomain.linalg import Diagonal, Full
from interdomain.linalg.precision import precision_terms
from interdomain.sums.bound import bound, residual_of
from interdomain.sums.dense import Collapsed, optimal_q, root_of, whiten
from interdomain.training.losses import NumericalBreakdown, tensorflow_errors_as_breakdowns
from tests.conformance.helpers import assert_close

NUM_ROWS, NUM_INDUCING, NUM_MEANS = 300, 70, 2  # more than a panel of the factorisation
OPERATORS: dict[str, Callable[[tf.Tensor], tf.linalg.LinearOperator]] = {
    "diagonal": Diagonal,
    "full": lambda spectrum: Full(tf.linalg.diag(spectrum) + 0.3),
}
both_operators = pytest.mark.parametrize("name", OPERATORS)
both_modes = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


def make_inputs(num_outputs: int, noise: float) -> list[tf.Tensor]:
    """The spectrum of Kuu, the noise variance, the gram, the mean's weights, the prior variance."""
    rng = np.random.default_rng(num_outputs)
    rows = rng.normal(size=(NUM_INDUCING + num_outputs + NUM_MEANS, NUM_ROWS))
    rows[:NUM_INDUCING] *= np.linspace(1, 1e-3, NUM_INDUCING)[:, None]
    rows[-1] = 1  # a column of the mean, whose sum of squares is the number of rows
    return [
        tf.constant(rng.uniform(0.5, 4.0, size=NUM_INDUCING)),
        tf.constant(noise, tf.float64),
        tf.constant(rows @ rows.T),
        tf.constant(rng.normal(size=(NUM_MEANS, num_outputs))),
        tf.constant(2_000.0, tf.float64),
    ]


class Sums(NamedTuple):
    gram: tf.Tensor
    psi: tf.Tensor
    squared_error: tf.Tensor
    prior_variance: tf.Tensor


def sums_of(inputs: list[tf.Tensor]) -> Sums:
    _, _, joint, weights, prior_variance = inputs
    size, residual = NUM_INDUCING, residual_of(weights)
    error = tf.reduce_sum(residual * (joint[size:, size:] @ residual))
    return Sums(joint[:size, :size], joint[:size, size:] @ residual, error, prior_variance)


def collapse(kuu: Any, inputs: list[tf.Tensor], *, gram_gradient: bool = True) -> Collapsed:
    sums = sums_of(inputs)
    return whiten(root_of(kuu), sums.gram, sums.psi, gram_gradient=gram_gradient)


def bound_of(kuu: Any, inputs: list[tf.Tensor], charge: str = "trace", **how: bool) -> tf.Tensor:
    _, noise, joint, weights, prior_variance = inputs
    targets = joint[NUM_INDUCING:, NUM_INDUCING:]
    complete = np.full(NUM_INDUCING, True)
    collapsed = collapse(kuu, inputs, **how)
    parts = collapsed, targets, weights, prior_variance, complete, noise, targets[-1, -1]
    return bound(*parts, charge=charge)


def factors(kuu: Any, inputs: list[tf.Tensor]) -> tuple[Sums, tf.Tensor, tf.Tensor, tf.Tensor]:
    """The sums, the trace of the whitened Phi, B and ``R^{-1} Psi / s``, by TensorFlow alone."""
    sums, noise, root = sums_of(inputs), inputs[1], tf.linalg.cholesky(kuu.to_dense())
    half = tf.linalg.triangular_solve(root, sums.gram)
    whitened = tf.linalg.triangular_solve(root, tf.transpose(half))
    B = tf.eye(NUM_INDUCING, dtype=tf.float64) + whitened / noise
    return sums, tf.linalg.trace(whitened), B, tf.linalg.triangular_solve(root, sums.psi) / noise


def expected_bound(kuu: Any, inputs: list[tf.Tensor], charge: str = "trace") -> tf.Tensor:
    """Titsias 2009, eq. 9; by logarithm, Titsias 2025."""
    sums, explained, B, columns = factors(kuu, inputs)
    L, noise = tf.linalg.cholesky(B), inputs[1]
    c = tf.linalg.triangular_solve(L, columns)
    determinant = 2 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L)))
    unexplained = (sums.prior_variance - explained) / noise
    if charge == "log":
        num_rows = inputs[2][-1, -1]
        unexplained = num_rows * tf.math.log(1 + unexplained / num_rows)
    each = inputs[2][-1, -1] * tf.math.log(2 * np.pi * noise) + determinant + unexplained
    fit = sums.squared_error / noise - tf.reduce_sum(c**2)
    return -(columns.shape[1] * each + fit) / 2


def expected_q(kuu: Any, inputs: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
    _, _, B, columns = factors(kuu, inputs)
    covariance = tf.linalg.inv(B)
    return covariance @ columns, tf.linalg.cholesky(covariance)


def value_and_gradients(
    function: Callable[[list[tf.Tensor]], tf.Tensor],
    inputs: list[tf.Tensor],
    compiled: bool = False,
) -> list[tf.Tensor]:
    def evaluate(*inputs: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            value = function(list(inputs))
        return [value, *tape.gradient(value, inputs)]

    evaluate = tf.function(evaluate, autograph=False) if compiled else evaluate
    value, *gradients = evaluate(*inputs)
    # Only the symmetric part of the gradient to a symmetric matrix means anything.
    gradients[2] = (gradients[2] + tf.transpose(gradients[2])) / 2
    return [value, *gradients]


@both_operators
def test_bound_and_its_gradients(name: str) -> None:
    operator = OPERATORS[name]

    for num_outputs, noise, charge in (
        (1, 1e-3, "trace"),
        (3, 0.1, "trace"),
        (1, 50.0, "trace"),
        (3, 0.1, "log"),
        (1, 50.0, "log"),
    ):
        ours, oracle = (
            lambda inputs, made=made, charge=charge: made(operator(inputs[0]), inputs, charge)
            for made in (bound_of, expected_bound)
        )
        inputs = make_inputs(num_outputs, noise)
        inputs[4] *= 50 if charge == "log" else 1  # more than is explained
        expected = value_and_gradients(oracle, inputs)
        for compiled in (False, True):
            assert_close(value_and_gradients(ours, inputs, compiled), expected, rtol=1e-9)
        assert_close([ours(inputs)], expected[:1], rtol=1e-9)  # the value alone


@both_operators
def test_optimal_q_and_its_gradients(name: str) -> None:
    operator = OPERATORS[name]
    rng = np.random.default_rng(3)
    directions = rng.normal(size=[NUM_INDUCING, 3]), rng.normal(size=[NUM_INDUCING] * 2)

    def along(q: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return tf.add_n([tf.reduce_sum(d * part) for d, part in zip(directions, q, strict=True)])

    def ours(inputs: list[tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        return optimal_q(collapse(operator(inputs[0]), inputs), inputs[1])

    inputs = make_inputs(3, 0.1)
    assert_close(list(ours(inputs)), list(expected_q(operator(inputs[0]), inputs)), rtol=1e-9)
    assert np.all(np.triu(ours(inputs)[1], 1) == 0)
    parts = slice(0, 4)  # q does not depend on the prior variance
    expected = value_and_gradients(
        lambda given: along(expected_q(operator(given[0]), given)) + given[4], inputs
    )
    for compiled in (False, True):
        found = value_and_gradients(lambda given: along(ours(given)) + given[4], inputs, compiled)
        assert_close(found[parts], expected[parts], rtol=1e-8)


def test_a_constant_gram_costs_no_dense_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the gradients to everything else are the same."""
    inputs = make_inputs(3, 0.1)

    def gradients(gram_gradient: bool) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch([inputs[0], inputs[1]])
            value = bound_of(Diagonal(inputs[0]), inputs, gram_gradient=gram_gradient)
        return list(tape.gradient(value, [inputs[0], inputs[1]]))

    expected = gradients(True)
    monkeypatch.setattr("interdomain.linalg.lapack.multiply_by_adjoint", None)
    assert_close(gradients(False), expected, rtol=1e-12)


def test_a_feature_without_prior_variance() -> None:
    """Its Kuu is infinite; it takes no part, and the gradients to the others are theirs."""
    inputs = make_inputs(1, 0.1)
    spectrum = inputs[0].numpy()
    spectrum[7] = np.inf
    inputs[0] = tf.constant(spectrum)
    scale = 1 / tf.sqrt(inputs[0])
    with tf.GradientTape() as tape:
        tape.watch(scale)
        sums = sums_of(inputs)
        log_determinant, _ = precision_terms(
            scale, sums.gram, sums.psi, inputs[1], gram_gradient=False
        )
    gradient = tape.gradient(log_determinant, scale).numpy()
    assert gradient[7] == 0
    assert np.all(np.isfinite(gradient))


def failing_inputs() -> list[tf.Tensor]:
    """A gram that is not positive semi-definite, and has to show at this noise."""
    inputs = make_inputs(1, 1e-3)
    inputs[2] = tf.linalg.set_diag(inputs[2], -tf.linalg.diag_part(inputs[2]))
    return inputs


@both_modes
def test_a_factorisation_that_fails(compiled: bool) -> None:
    """It says so, and a line search takes it for a breakdown; NaN goes in and comes out."""

    def value(*inputs: tf.Tensor) -> tf.Tensor:
        return bound_of(Diagonal(inputs[0]), list(inputs))

    def mean(*inputs: tf.Tensor) -> tf.Tensor:
        return optimal_q(collapse(Diagonal(inputs[0]), list(inputs)), inputs[1])

    for function in (value, mean):
        evaluate = tf.function(function, autograph=False) if compiled else function
        with pytest.raises(tf.errors.InvalidArgumentError, match="noise variance s, is not posit"):
            evaluate(*failing_inputs())
        with pytest.raises(NumericalBreakdown, match="a matrix factorisation failed"):
            with tensorflow_errors_as_breakdowns():
                evaluate(*failing_inputs())
        inputs = make_inputs(1, 1e-3)
        inputs[2] *= np.nan
        assert np.all(np.isnan(tf.nest.flatten(evaluate(*inputs))[0]))


def test_second_derivatives_raise(rows: Any, make_model: Any) -> None:
    model = make_model(rows)

    def second() -> Any:
        noise = model.likelihood.variance.unconstrained_variable
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = model.training_loss()
            first = inner.gradient(loss, noise)
        return outer.gradient(first, noise)

    with pytest.raises(NotImplementedError, match="can be differentiated once"):
        second()


def test_predictions_carry_gradients_of_the_parameters(rows: Any, make_model: Any) -> None:
    """Through the optimal q, against finite differences."""
    model = make_model(rows)
    X = np.array([[0.3, -0.2], [1.0, 0.5]])

    def total() -> tf.Tensor:
        return tf.add_n([tf.reduce_sum(part) for part in model.predict_f(X)])

    with tf.GradientTape() as tape:
        value = total()
    variables = model.trainable_variables
    for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
        start, step = variable.numpy(), 1e-5
        variable.assign(start + step)
        above = total()
        variable.assign(start - step)
        below = total()
        variable.assign(start)
        np.testing.assert_allclose(gradient, (above - below) / (2 * step), rtol=1e-6)


def test_the_log_density_of_parameters_without_a_factor(rows: Any, make_model: Any) -> None:
    """It is minus infinity, with gradients of zero, and a chain continues after such proposals."""
    few = rows[0][:5], rows[1][:5]  # so that features have common directions without noise
    model = make_model(few)
    gpflow.set_trainable(model, False)
    gpflow.set_trainable(model.kernel.variance, True)
    variables, state = model.trainable_variables, model.trainable_parameters
    for parameter in state:
        parameter.prior = tfp.distributions.Gamma(np.float64(99.0), np.float64(1e-3))

    def density() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            value = model.log_posterior_density()
        return [value, *tape.gradient(value, variables)]

    compiled = tf.function(density, autograph=False)
    with tf.GradientTape() as tape:
        value = -model.training_loss()
    expected = [value, *tape.gradient(value, variables)]
    assert_close(density(), expected, rtol=1e-12)
    assert_close(compiled(), expected, rtol=1e-9)
    model.kernel.variance.assign(0.01)  # the prior pulls it up, and a long step leads far
    start = [variable.numpy() for variable in variables]
    model.kernel.variance.assign(1e22)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not"):
        model.elbo()
    for value, *gradients in (density(), compiled()):
        assert value == -np.inf and not np.any(gradients)
    helper = gpflow.optimizers.SamplingHelper(model.log_posterior_density, state)

    @tf.function(autograph=False)
    def chain(step: tf.Tensor) -> Any:
        kernel = tfp.mcmc.HamiltonianMonteCarlo(helper.target_log_prob_fn, step, 1)
        return tfp.mcmc.sample_chain(2, helper.current_state, kernel=kernel, seed=1)

    proposed = []
    for step in np.geomspace(1e10, 1e12, 9):  # it depends on rounding which of them fail
        for variable, number in zip(variables, start, strict=True):
            variable.assign(number)  # as the helper leaves the last proposal
        samples, results = chain(tf.constant(step))
        proposed.append(results.proposed_results.target_log_prob)
        assert all(np.all(np.isfinite(part)) for part in samples)
        assert np.all(np.isfinite(results.accepted_results.target_log_prob))
    (variable,), (sample,) = variables, samples
    variable.assign(sample[-1])
    jacobian = state[0].transform.forward_log_det_jacobian(variable, 0)
    expected = model.maximum_log_likelihood_objective() + model.log_prior_density() + jacobian
    np.testing.assert_allclose(results.accepted_results.target_log_prob[-1], expected)
    assert np.any(np.isneginf(proposed))
