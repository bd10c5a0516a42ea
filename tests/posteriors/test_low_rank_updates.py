"""Models on an interval: no factorisation grows with M, and the evidence is reached."""

from __future__ import annotations

import gpflow
import pytest
import tensorflow as tf

from interdomain.inducing_variables import SumInducingVariables, VariationalFourierFeatures
from interdomain.models import AdditiveSVGP
from tests.conformance.helpers import value_and_gradients
from tests.families.waves.interval_cases import MATERNS, data

from .graph_ops import count_ops

FACTORISATIONS = ("Cholesky", "Solve", "Inverse", "Determinant", "Qr", "Svd", "Eig", "Lu")
ENDS = (-5.0, 6.0)
# Periodic features are the same at both ends, and so are their derivatives: however many there are,
# they leave p + 1 directions of a process that is not periodic unexplained, each beginning at an
# end and dying out over a lengthscale. Data that are several lengthscales away from the ends do not
# see them. (Hensman et al. 2018, Figure 2.) Hence the interval of 11 for data on one of 2, and an
# evidence that is reached to a hundredth and not to rounding.


def svgp(sizes: tuple[int, ...]) -> gpflow.models.SVGP:
    """Stock for one block, additive for several."""
    kernels = [MATERNS[order](lengthscales=0.7) for order in (2, 1)][: len(sizes)]
    blocks = [VariationalFourierFeatures(*ENDS, size) for size in sizes]
    likelihood = gpflow.likelihoods.Gaussian(0.1)
    if len(sizes) == 1:
        return gpflow.models.SVGP(kernels[0], likelihood, blocks[0], whiten=False)
    return AdditiveSVGP(
        gpflow.kernels.Sum(kernels), likelihood, SumInducingVariables(blocks), whiten=False
    )


@pytest.mark.parametrize(("sizes", "num_batches"), [((11,), 1), ((11, 9), 2)])
def test_nothing_large_is_factorised(sizes: tuple[int, ...], num_batches: int) -> None:
    """In the graph of a training step and in that of a prediction: matrices of rank rows only."""
    model, (X, Y) = svgp(sizes), data()
    step = tf.function(
        lambda: value_and_gradients(lambda: model.elbo((X, Y)), model.trainable_variables),
        autograph=False,
    )
    predict = tf.function(lambda: model.predict_f(X), autograph=False)
    for function in (step, predict):
        graph = function.get_concrete_function()
        found = [
            operation
            for operation in graph.graph.get_operations()
            if any(name in operation.type for name in FACTORISATIONS)
        ]
        # None in functions within, whose shapes are not seen here.
        assert len(found) == count_ops(graph, FACTORISATIONS)
        uses = 1 if len(sizes) > 1 or function is predict else 2  # of Kuu
        assert count_ops(graph, ("Cholesky",)) == uses * num_batches
        for operation in found:
            assert max(operation.inputs[0].shape[-2:]) <= 3, operation


def gap(order: int, num_frequencies: int) -> float:
    """What SGPR's bound lacks of the evidence."""
    kernel, (X, Y) = MATERNS[order](lengthscales=0.7), data()
    features = VariationalFourierFeatures(*ENDS, num_frequencies)
    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=0.05).log_marginal_likelihood()
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        bound = gpflow.models.SGPR((X, Y), kernel, features, noise_variance=0.05).elbo()
    return float(exact - bound)


@pytest.mark.parametrize("order", [0, 1, 2], ids=["matern12", "matern32", "matern52"])
def test_the_bound_tends_to_the_evidence(order: int) -> None:
    """Monotonically; slowly for Matern-1/2, whose spectrum falls slowly."""
    gaps = [gap(order, count) for count in (20, 80, 320)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < (1e-2 if order else gaps[0] / 4)
