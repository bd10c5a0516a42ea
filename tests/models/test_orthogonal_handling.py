"""What users do with an OrthogonalSVGP besides training it; and the graph of a step."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.models import OrthogonalSVGP
from tests.conformance.helpers import assert_close, value_and_gradients
from tests.conformance.selection import param
from tests.posteriors.graph_ops import count_ops

from .cases import make_data, points
from .handling import (
    assert_copies_are_equal_and_independent,
    assert_exports,
    assert_parameters_are_shown_once,
)
from .orthogonal_cases import BY_NAME, make_orthogonal

Q = ["q_mu", "q_sqrt", "q_mu_orthogonal", "q_sqrt_orthogonal"]


@pytest.fixture(params=["solve", pytest.param("odvgp", marks=pytest.mark.full)])
def model(request: pytest.FixtureRequest) -> OrthogonalSVGP:
    return make_orthogonal(
        BY_NAME["activations-points"], variant=request.param, num_latent_gps=2, whiten=False
    )


def test_each_parameter_is_shown_once(model: OrthogonalSVGP, capsys) -> None:  # noqa: ANN001
    names = Q if model.variant == "solve" else Q[:3]
    assert_parameters_are_shown_once(model, [f".{name}" for name in names], capsys)
    assert [len(pair) for pair in model.variational_parameters] == [2] * (len(names) // 2)


def test_copies(model: OrthogonalSVGP, tmp_path) -> None:  # noqa: ANN001
    def fresh() -> OrthogonalSVGP:
        return make_orthogonal(
            BY_NAME["activations-points"], variant=model.variant, num_latent_gps=2, whiten=False
        )

    assert_copies_are_equal_and_independent(model, fresh, tmp_path)


def test_unknown_number_of_rows_and_export(model: OrthogonalSVGP, tmp_path) -> None:  # noqa: ANN001
    assert_exports(model, tmp_path)


def test_posterior_inside_a_function(model: OrthogonalSVGP) -> None:
    """Made outside and used inside, its VARIABLE cache follows the parameters when updated."""
    X = points(4, seed=8)
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.VARIABLE)
    predict = tf.function(posterior.predict_f, autograph=False)
    before = predict(X)
    assert_close(before, model.predict_f(X))
    model.q_mu_orthogonal.assign(model.q_mu_orthogonal + 0.5)
    assert np.max(np.abs(model.predict_f(X)[0] - before[0])) > 1e-3
    assert_close(predict(X), before, rtol=1e-12)
    posterior.update_cache()
    assert_close(predict(X), model.predict_f(X))


@pytest.mark.parametrize(
    ("name", "whiten", "expected"),
    [
        param("harmonics-points", False, 1, id="harmonics-points"),
        param("harmonics-activations", True, 1, id="harmonics-activations", quick=False),
        param("points-points", True, 2, id="points-points-whitened"),
        param("points-points", False, 2, id="points-points", quick=False),
        param("activations-harmonics", False, 2, id="activations-harmonics", quick=False),
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
