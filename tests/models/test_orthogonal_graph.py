"""The graph of a step of OrthogonalSVGP, and of a prediction."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.conformance.helpers import value_and_gradients
from tests.posteriors.graph_ops import count_ops

from .cases import make_data, points
from .orthogonal_cases import BY_NAME, make_orthogonal


@pytest.mark.parametrize(
    ("name", "whiten", "expected"),
    [
        ("harmonics-points", False, 1),
        ("points-points", True, 2),
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
