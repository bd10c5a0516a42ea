"""What holds of AdditiveSVGP and of OrthogonalSVGP alike."""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import pytest
import tensorflow as tf

from interdomain.models import HVGP, AdditiveSVGP, OrthogonalSVGP
from interdomain.transforms import Rotation
from tests.conformance.helpers import assert_close, step_graph
from tests.posteriors.graph_ops import count_ops
from tests.svgp import cases, orthogonal_cases

from .cases import make_additive, make_data, points
from .orthogonal_cases import make_orthogonal

Make = Callable[..., gpflow.models.SVGP]


def additive(name: str = "mixed", **options: object) -> AdditiveSVGP:
    return make_additive(cases.BY_NAME[name], **options)


def orthogonal(name: str, **options: object) -> OrthogonalSVGP:
    return make_orthogonal(orthogonal_cases.BY_NAME[name], **options)


@pytest.mark.parametrize(
    ("make", "name", "options"),
    [
        (additive, "complete", {}),
        (orthogonal, "activations-harmonics", {"variant": "solve"}),
        (orthogonal, "activations-harmonics", {"variant": "odvgp"}),
    ],
)
def test_initial_q_is_the_prior(make: Make, name: str, options: dict[str, str]) -> None:
    model = make(name, random_q=False, **options)
    assert abs(float(model.prior_kl())) < 1e-12
    X = points(5, seed=9)
    mean, cov = model.predict_f(X, full_cov=True)
    assert_close(mean, model.mean_function(X), rtol=1e-13)
    assert_close(cov[0], model.kernel(X), rtol=1e-12)


# Graphs of a step and of a prediction: one factorisation a batch, hardly more for more blocks.


@pytest.mark.parametrize(
    ("make", "name", "whiten", "q_diag", "expected"),
    [
        # Batches: those of either multiplicity; the dense ones; none.
        (additive, "complete", True, True, 2),
        (additive, "mixed", False, False, 1),
        (additive, "diagonal", False, False, 0),
        # C_vv and Kuu, which harmonics as a base do not need.
        (orthogonal, "harmonics-points", False, False, 1),
        (orthogonal, "points-points", True, False, 2),
    ],
)
def test_one_factorisation_per_batch(
    make: Make, name: str, whiten: bool, q_diag: bool, expected: int
) -> None:
    """For the elbo and its gradient together, with three latent GPs."""
    model = make(name, whiten=whiten, q_diag=q_diag, num_latent_gps=3)
    graph = step_graph(model, make_data(3))
    assert count_ops(graph, ("Cholesky",)) == expected
    assert count_ops(graph, ("CholeskyGrad", "MatrixInverse", "LogMatrixDeterminant")) == 0
    if name == "diagonal":
        assert count_ops(graph, ("TriangularSolve",)) == 0
    if name == "points-points":
        kl = tf.function(model.prior_kl, autograph=False).get_concrete_function()
        assert count_ops(kl, ("Cholesky", "TriangularSolve")) == 0


def graph_size(num_blocks: int) -> int:
    """The parts of a rotation of order 2 (T - 1): T of them, by one transformation."""
    model = HVGP(
        gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(),
        points(num_blocks, 3),
        Rotation(2 * (num_blocks - 1)),
        whiten=False,
    )
    assert len(model.q_mu) == num_blocks
    return count_ops(step_graph(model, make_data()), ("",))


def test_growth() -> None:
    """A block that is added has its parameters read and their gradients returned, no more."""
    assert graph_size(5) - graph_size(3) < 2 * 12


def test_cached_predictions_factorise_nothing() -> None:
    model = make_orthogonal(orthogonal_cases.BY_NAME["points-points"], whiten=False)
    posterior = model.posterior()
    function = tf.function(lambda X: posterior.predict_f(X), autograph=False)
    graph = function.get_concrete_function(tf.constant(points(4)))
    assert count_ops(graph, ("Cholesky", "TriangularSolve")) == 0
