"""Graphs of a step and of a prediction: one factorisation a batch, hardly more for more blocks."""

from __future__ import annotations

import gpflow
import pytest
import tensorflow as tf
from tensorflow.types.experimental import ConcreteFunction

from interdomain.models import HVGP
from interdomain.transforms import Rotation
from tests.conformance.helpers import value_and_gradients
from tests.posteriors.graph_ops import count_ops

from . import orthogonal_cases
from .cases import BY_NAME, make_additive, make_data, points
from .orthogonal_cases import make_orthogonal


def step_graph(model: gpflow.models.SVGP) -> ConcreteFunction:
    data = make_data(model.num_latent_gps)
    function = tf.function(
        lambda: value_and_gradients(lambda: model.elbo(data), model.trainable_variables),
        autograph=False,
    )
    return function.get_concrete_function()


@pytest.mark.parametrize(
    ("name", "whiten", "q_diag", "expected"),
    [
        # Batches: those of either multiplicity; the dense ones; none.
        ("complete", True, True, 2),
        ("mixed", False, False, 1),
        ("diagonal", False, False, 0),
    ],
)
def test_one_factorisation_per_batch(name: str, whiten: bool, q_diag: bool, expected: int) -> None:
    """For the elbo and its gradient together, also unwhitened, and with three latent GPs."""
    model = make_additive(BY_NAME[name], whiten=whiten, q_diag=q_diag, num_latent_gps=3)
    graph = step_graph(model)
    assert count_ops(graph, ("Cholesky",)) == expected
    assert count_ops(graph, ("CholeskyGrad", "MatrixInverse", "LogMatrixDeterminant")) == 0
    if name == "diagonal":
        assert count_ops(graph, ("TriangularSolve",)) == 0


def graph_size(num_blocks: int) -> int:
    """The parts of a rotation of order 2 (T - 1): T of them, by one transformation."""
    model = HVGP(
        gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(),
        points(num_blocks, 3),
        Rotation(2 * (num_blocks - 1)),
        whiten=False,
    )
    assert model.num_blocks == num_blocks
    return count_ops(step_graph(model), ("",))


def test_growth() -> None:
    """A block that is added has its parameters read and their gradients returned, no more."""
    assert graph_size(6) - graph_size(3) < 3 * 12


@pytest.mark.parametrize(
    ("name", "whiten", "expected"),
    [
        ("harmonics-points", False, 1),
        ("points-points", True, 2),
    ],
)
def test_factorisations_of_orthogonal_variables(name: str, whiten: bool, expected: int) -> None:
    """For the elbo and its gradient: of C_vv and of Kuu, which harmonics as a base do not need."""
    model = make_orthogonal(orthogonal_cases.BY_NAME[name], whiten=whiten)
    graph = step_graph(model)
    assert count_ops(graph, ("Cholesky",)) == expected
    assert count_ops(graph, ("CholeskyGrad", "MatrixInverse", "LogMatrixDeterminant")) == 0
    if whiten:
        kl = tf.function(model.prior_kl, autograph=False).get_concrete_function()
        assert count_ops(kl, ("Cholesky", "TriangularSolve")) == 0


def test_cached_predictions_factorise_nothing() -> None:
    model = make_orthogonal(orthogonal_cases.BY_NAME["points-points"], whiten=False)
    posterior = model.posterior()
    function = tf.function(lambda X: posterior.predict_f(X), autograph=False)
    graph = function.get_concrete_function(tf.constant(points(4)))
    assert count_ops(graph, ("Cholesky", "TriangularSolve")) == 0
