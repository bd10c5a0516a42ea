"""What users do with an OrthogonalSVGP besides training it; and the graph of a step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from interdomain.models import OrthogonalSVGP
from tests.conformance.helpers import value_and_gradients
from tests.posteriors.graph_ops import count_ops

from .cases import make_data, points
from .handling import (
    assert_a_compiled_posterior_follows,
    assert_copies_are_equal_and_independent,
    assert_parameters_are_shown_once,
)
from .orthogonal_cases import BY_NAME, make_orthogonal

Q = ["q_mu", "q_sqrt", "q_mu_orthogonal", "q_sqrt_orthogonal"]


@pytest.fixture
def model() -> OrthogonalSVGP:
    return make_orthogonal(BY_NAME["activations-points"], num_latent_gps=2, whiten=False)


@pytest.mark.parametrize("variant", ["solve", "odvgp"])
def test_each_parameter_is_shown_once(variant: str, capsys) -> None:  # noqa: ANN001
    model = make_orthogonal(BY_NAME["harmonics-points"], variant=variant)
    names = Q if variant == "solve" else Q[:3]
    assert_parameters_are_shown_once(model, [f".{name}" for name in names], capsys)
    assert [len(pair) for pair in model.variational_parameters] == [2] * (len(names) // 2)


def test_copies(model: OrthogonalSVGP, tmp_path) -> None:  # noqa: ANN001
    def fresh() -> OrthogonalSVGP:
        return make_orthogonal(BY_NAME["activations-points"], num_latent_gps=2, whiten=False)

    assert_copies_are_equal_and_independent(model, fresh, tmp_path)


def test_posterior_inside_a_function(model: OrthogonalSVGP) -> None:
    assert_a_compiled_posterior_follows(model, model.q_mu_orthogonal)


@pytest.mark.parametrize(
    ("name", "whiten", "expected"),
    [
        ("harmonics-points", False, 1),
        ("points-points", True, 2),
        ("activations-harmonics", False, 2),
    ],
)
def test_factorisations(name: str, whiten: bool, expected: int) -> None:
    """For the elbo and its gradient: of C_vv and of Kuu, which harmonics as a base do not need."""
    model, data = make_orthogonal(BY_NAME[name], whiten=whiten), make_data()
    function = tf.function(
        lambda: value_and_gradients(lambda: model.elbo(data), model.trainable_variables),
        autograph=False,
    )
    graph = function.get_concrete_function()
    assert count_ops(graph, ("Cholesky",)) == expected
    assert count_ops(graph, ("CholeskyGrad", "MatrixInverse", "LogMatrixDeterminant")) == 0
    if whiten:
        kl = tf.function(model.prior_kl, autograph=False).get_concrete_function()
        assert count_ops(kl, ("Cholesky", "TriangularSolve")) == 0


def test_cached_predictions_factorise_nothing() -> None:
    model = make_orthogonal(BY_NAME["points-points"], whiten=False)
    posterior = model.posterior()
    function = tf.function(lambda X: posterior.predict_f(X), autograph=False)
    graph = function.get_concrete_function(tf.constant(points(4)))
    assert count_ops(graph, ("Cholesky", "TriangularSolve")) == 0
