"""A diagonal Kuu costs no Cholesky factor and no triangular solve: the graph has no such op."""

from __future__ import annotations

import gpflow
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain.covariances import Kuu_operator
from interdomain.posteriors import StructuredPosterior
from tests.conformance.cases import CASES, ONE_OF_EACH_KIND, Case
from tests.conformance.dense_twin import dense_twin
from tests.conformance.helpers import make_data, make_inputs, make_svgp, value_and_gradients

from .graph_ops import count_ops

# Parts of the names: BatchCholesky, CholeskyGrad and MatrixTriangularSolve contain them.
FACTORISATIONS = ("Cholesky", "TriangularSolve")
DIAGONAL = [case for case in CASES if case.diagonal and case.representative]
OTHERS = [case for case in ONE_OF_EACH_KIND if case.kind in ("full", "low-rank blocks")]


def count_in_training(model: gpflow.models.SVGP, case: Case, names: tuple[str, ...]) -> int:
    data = make_data(case, model.num_latent_gps)
    function = tf.function(
        lambda: value_and_gradients(lambda: model.elbo(data), model.trainable_variables),
        autograph=False,
    )
    return count_ops(function.get_concrete_function(), names)


def count_in_prediction(model: gpflow.models.SVGP, case: Case, names: tuple[str, ...]) -> int:
    X = make_inputs(case, 4)
    function = tf.function(lambda: model.predict_f(X), autograph=False)
    return count_ops(function.get_concrete_function(), names)


def test_diagonal_needs_none() -> None:
    """Neither the algebra, nor the features of any class; unwhitened with a full q, which has most
    to do."""
    first = DIAGONAL[0]
    model = make_svgp(first, whiten=False, num_latent_gps=2)
    assert count_in_training(model, first, FACTORISATIONS) == 0
    for case in DIAGONAL:
        model = make_svgp(case, whiten=False, num_latent_gps=2)
        assert count_in_prediction(model, case, FACTORISATIONS) == 0, case.name


def test_counter_finds_those_of_the_dense_twin() -> None:
    case = DIAGONAL[0]
    twin = dense_twin(make_svgp(case, whiten=False))
    for name in FACTORISATIONS:
        assert count_in_prediction(twin, case, (name,)) > 0


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.kind)
def test_latent_gps_share_factorisations(case: Case) -> None:
    """One Cholesky factor per dense block for each use of Kuu (the KL divergence and the
    conditional), however many latent GPs there are."""
    model = make_svgp(case, whiten=False, num_latent_gps=3)
    blocks = 2 if case.kind == "low-rank blocks" else 1
    assert count_in_training(model, case, ("Cholesky",)) == 2 * blocks


def test_points_in_a_structured_posterior_are_factorised_once() -> None:
    """Stock inducing points through Kuu_operator, five latent GPs."""
    kernel, points = gpflow.kernels.Matern32(), InducingPoints([[0.0], [1.0], [2.5]])
    posterior = StructuredPosterior(
        kernel,
        points,
        tf.ones([3, 5], tf.float64),
        tf.eye(3, batch_shape=[5], dtype=tf.float64),
        precompute_cache=None,
    )
    assert isinstance(Kuu_operator(points, kernel), tf.linalg.LinearOperatorFullMatrix)
    X = tf.constant([[0.3], [1.4]], tf.float64)
    graph = tf.function(lambda: posterior.fused_predict_f(X)).get_concrete_function()
    assert count_ops(graph, ("Cholesky",)) == 1
