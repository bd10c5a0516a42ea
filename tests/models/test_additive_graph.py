"""The graph of a step: one factorisation a batch, and hardly more operations for more blocks."""

from __future__ import annotations

import gpflow
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from tensorflow.types.experimental import ConcreteFunction

from interdomain.inducing_variables import SumInducingVariables
from interdomain.models import HVGP, AdditiveSVGP
from interdomain.transforms import Rotation
from tests.conformance.helpers import value_and_gradients
from tests.posteriors.graph_ops import count_ops

from .cases import BY_NAME, make_additive, make_data, points


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
        # Batches: those of either multiplicity; of sizes 3 and 5; the dense ones; none.
        ("complete", False, False, 2),
        ("stock", True, True, 2),
        ("mixed", True, False, 1),
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


def graph_size(num_blocks: int, shared: bool, whiten: bool) -> int:
    """The parts of a rotation of order 2 (T - 1): T of them, by one transformation."""
    model = HVGP(
        gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(),
        points(3) if shared else points(num_blocks, 3),
        Rotation(2 * (num_blocks - 1)),
        whiten=whiten,
    )
    assert model.num_blocks == num_blocks
    return count_ops(step_graph(model), ("",))


@pytest.mark.parametrize("shared", [False, True], ids=["distinct", "shared"])
def test_growth(shared: bool) -> None:
    """A block that is added has its parameters read and their gradients returned, no more."""
    counts = [graph_size(T, shared, whiten=shared) for T in (4, 8)]
    assert counts[1] - counts[0] < 12 * 4, counts


def test_growth_for_stock_inducing_points() -> None:
    """Each brings its own Kuu and Kuf; the algebra after them is shared."""
    algebra = []
    for size in (2, 4):
        kernels = [gpflow.kernels.Matern32(active_dims=[k % 3]) for k in range(size)]
        blocks = [InducingPoints(points(4, seed=k)) for k in range(size)]
        model = AdditiveSVGP(
            gpflow.kernels.Sum(kernels),
            gpflow.likelihoods.Gaussian(),
            SumInducingVariables(blocks),
            whiten=False,
        )
        algebra.append(count_ops(step_graph(model), ("Cholesky", "TriangularSolve")))
    assert algebra[0] == algebra[1] > 1
