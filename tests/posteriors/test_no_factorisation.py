"""A diagonal Kuu costs no Cholesky factor and no triangular solve: the graph has no such op."""

from __future__ import annotations

import gpflow
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain.covariances import Kuu_operator
from interdomain.posteriors import StructuredPosterior
from tests.conformance.cases import CASES, Case
from tests.conformance.dense_twin import dense_twin
from tests.conformance.helpers import make_data, make_inputs, make_svgp, value_and_gradients
from tests.conformance.selection import param

from .graph_ops import count_ops

# Parts of the names: BatchCholesky, CholeskyGrad and MatrixTriangularSolve contain them.
FACTORISATIONS = ("Cholesky", "TriangularSolve")
DIAGONAL = [case for case in CASES if case.diagonal]
BLOCKS = [case for case in CASES if not case.diagonal]
Q = pytest.mark.parametrize(
    ("whiten", "q_diag"),
    [
        param(True, True, id="whitened-diagonal", quick=False),
        param(False, False, id="unwhitened-full"),
    ],
)


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


def two_forms(cases: list[Case]) -> pytest.MarkDecorator:
    """Each class whitened and not, one of them with a diagonal q and the other with a full one, and
    the next case the other way round. Other cases unwhitened alone, where Kuu is used twice; in the
    quick tier, so is each class."""
    names = {True: "whitened", False: "unwhitened"}, {True: "diagonal", False: "full"}
    return pytest.mark.parametrize(
        ("case", "whiten", "q_diag"),
        [
            param(
                case,
                *q,
                id=f"{case.name}-{names[0][q[0]]}-{names[1][q[1]]}",
                quick=not q[0] and case.representative,
            )
            for k, case in enumerate(cases)
            for q in ((True, k % 2 == 0), (False, k % 2 == 1))
            if case.representative or not q[0]
        ],
    )


@two_forms(DIAGONAL)
def test_diagonal_needs_none(case: Case, whiten: bool, q_diag: bool) -> None:
    model = make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=2)
    assert count_in_training(model, case, FACTORISATIONS) == 0
    assert count_in_prediction(model, case, FACTORISATIONS) == 0


@Q
def test_counter_finds_those_of_the_dense_twin(whiten: bool, q_diag: bool) -> None:
    case = DIAGONAL[0]
    twin = dense_twin(make_svgp(case, whiten=whiten, q_diag=q_diag))
    for name in ("Cholesky", "TriangularSolve"):
        assert count_in_training(twin, case, (name,)) > 0
        assert count_in_prediction(twin, case, (name,)) > 0


def test_counter_looks_into_nested_functions() -> None:
    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        return tf.linalg.cholesky(x)

    @tf.function
    def outer(x: tf.Tensor) -> tf.Tensor:
        step = lambda i, y: (i + 1, inner(y))  # noqa: E731
        return tf.while_loop(lambda i, y: i < 2, step, (tf.constant(0), x))[1]

    graph = outer.get_concrete_function(tf.TensorSpec([3, 3], tf.float64))
    assert "Cholesky" not in [op.type for op in graph.graph.get_operations()]
    assert count_ops(graph, ("Cholesky",)) == 1


@two_forms(BLOCKS)
def test_latent_gps_share_factorisations(case: Case, whiten: bool, q_diag: bool) -> None:
    """One Cholesky factor per dense block for each use of Kuu (the KL divergence and the
    conditional), however many latent GPs there are."""
    uses = 1 if whiten else 2
    options = {"whiten": whiten, "q_diag": q_diag}
    found = count_in_training(make_svgp(case, num_latent_gps=3, **options), case, ("Cholesky",))
    if case.num_factorisations is None:  # those of the kernel's own matrices are among them
        assert found == count_in_training(make_svgp(case, **options), case, ("Cholesky",))
    else:
        assert found == uses * case.num_factorisations


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
