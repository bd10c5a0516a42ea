"""A diagonal Kuu costs no Cholesky factor and no triangular solve: the graph has no such op."""

import tracemalloc
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.families.sphere import harmonics as harmonics_module
from interdomain.families.sphere.mathematics.harmonic_products import chosen_harmonics
from interdomain.inducing_variables import (
    BoxFourierFeatures,
    SphericalHarmonics,
    SumInducingVariables,
    VariationalFourierFeatures,
)
from interdomain.kernels import FiniteRank, Periodized, SphericalMatern52
from interdomain.models import AdditiveSVGP
from tests.conformance.cases import CASES, ONE_OF_EACH_KIND, Case
from tests.conformance.dense_twin import dense_twin
from tests.conformance.helpers import (
    assert_close,
    make_data,
    make_inputs,
    make_svgp,
    step_graph,
    value_and_gradients,
)
from tests.families.waves.interval_cases import MATERNS, data

from .graph_ops import count_ops

# Parts of the names: BatchCholesky, CholeskyGrad and MatrixTriangularSolve contain them.
FACTORISATIONS = ("Cholesky", "TriangularSolve")
DIAGONAL = [case for case in CASES if case.diagonal and case.representative]
OTHERS = [case for case in ONE_OF_EACH_KIND if case.kind in ("full", "low-rank blocks")]


def count_in_training(model: gpflow.models.SVGP, case: Case, names: tuple[str, ...]) -> int:
    return count_ops(step_graph(model, make_data(case, model.num_latent_gps)), names)


def count_in_prediction(model: gpflow.models.SVGP, case: Case, names: tuple[str, ...]) -> int:
    X = make_inputs(case, 4)
    function = tf.function(lambda: model.predict_f(X), autograph=False)
    return count_ops(function.get_concrete_function(), names)


def test_diagonal_needs_none() -> None:
    """Neither the algebra, nor the features of any class."""
    first = DIAGONAL[0]
    model = make_svgp(first, whiten=False, num_latent_gps=2)
    assert count_in_training(model, first, FACTORISATIONS) == 0
    for case in DIAGONAL:
        model = make_svgp(case, whiten=False, num_latent_gps=2)
        assert count_in_prediction(model, case, FACTORISATIONS) == 0, case.name


@pytest.mark.parametrize("case", OTHERS, ids=lambda case: case.kind)
def test_latent_gps_share_factorisations(case: Case) -> None:
    """One Cholesky factor per dense block for each use of Kuu: in the KL and the conditional; two
    of low rank, as that of polynomials is another."""
    model = make_svgp(case, whiten=False, num_latent_gps=3)
    blocks = 4 if case.kind == "low-rank blocks" else 1
    assert count_in_training(model, case, ("Cholesky",)) == 2 * blocks


# With a diagonal q and a diagonal Kuu nothing has M^2 numbers, and features are computed once.

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=[30, 3]), RNG.normal(size=[30, 1])
SIZE = 25
LIKELIHOOD = gpflow.likelihoods.Gaussian(0.1)


def harmonics(size: int = SIZE) -> tuple[Any, Any]:
    base = SphericalMatern52(weight_variances=np.ones(3))
    chosen = SphericalHarmonics.for_data(base, X, size)
    return FiniteRank(base, chosen), chosen


def box(size: int = SIZE) -> tuple[Any, Any]:
    base = Periodized.from_data(gpflow.kernels.Matern32(lengthscales=np.ones(3)), X, margin=3.0)
    waves = BoxFourierFeatures.for_kernel(base, size)
    return FiniteRank(base, waves), waves


@pytest.mark.parametrize(
    ("make", "model_class"), [(harmonics, gpflow.models.SVGP), (box, AdditiveSVGP)]
)
def test_no_tensor_is_quadratic(make: Any, model_class: type) -> None:
    kernel, features = make()
    size = int(features.num_inducing)
    model = model_class(kernel, LIKELIHOOD, features, q_diag=True, num_data=30)
    graph = step_graph(model, (X, Y)).graph
    shapes = [out.shape for op in graph.get_operations() for out in op.outputs]
    known = [shape.as_list() for shape in shapes if shape.rank is not None]
    assert any(shape.count(size) == 1 for shape in known)
    assert not [shape for shape in known if shape.count(size) > 1]


def test_no_array_is_quadratic() -> None:
    """No array is quadratic in 4,000 variables, which would need 128 MB."""
    kernel, features = box(4_000)
    tracemalloc.start()
    try:
        AdditiveSVGP(kernel, LIKELIHOOD, features, q_diag=True, num_data=30)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10**7


@pytest.mark.parametrize("in_sum", [False, True], ids=["alone", "in a sum"])
def test_features_of_a_finite_rank_are_computed_once(
    in_sum: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a sum with a summand without features the kernel's diagonal needs them again."""
    kernel, chosen = harmonics()
    features: Any = chosen
    if in_sum:
        kernel = kernel + gpflow.kernels.White(0.1)
        features = SumInducingVariables([chosen, None])
    model = gpflow.models.SVGP(kernel, LIKELIHOOD, features, q_diag=True, num_data=30)
    model.q_mu.assign(RNG.normal(size=[SIZE, 1]))
    model.q_sqrt.assign(RNG.uniform(0.1, 1, size=[SIZE, 1]))
    count = 0

    def counted(*arguments: Any, **options: Any) -> tf.Tensor:
        nonlocal count
        count += 1
        return chosen_harmonics(*arguments, **options)

    monkeypatch.setattr(harmonics_module, "chosen_harmonics", counted)
    variables, twin = model.trainable_variables, dense_twin(model)
    elbo, gradients = value_and_gradients(lambda: model.elbo((X, Y)), variables)
    assert count == (2 if in_sum else 1)
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        expected, references = value_and_gradients(lambda: twin.elbo((X, Y)), variables)
    assert_close(elbo, expected, rtol=1e-12)
    assert_close(gradients, references, rtol=1e-9)


# Models on an interval: no factorisation grows with M, and the evidence is reached.

OF_MATRICES = ("Cholesky", "Solve", "Inverse", "Determinant", "Qr", "Svd", "Eig", "Lu")
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
    if len(sizes) == 1:
        return gpflow.models.SVGP(kernels[0], LIKELIHOOD, blocks[0], whiten=False)
    kernel, features = gpflow.kernels.Sum(kernels), SumInducingVariables(blocks)
    return AdditiveSVGP(kernel, LIKELIHOOD, features, whiten=False)


@pytest.mark.parametrize(("sizes", "num_batches"), [((11,), 1), ((11, 9), 2)])
def test_nothing_large_is_factorised(sizes: tuple[int, ...], num_batches: int) -> None:
    """In the graph of a training step and in that of a prediction: matrices of rank rows, and of
    as many as polynomials, only."""
    model, (X, Y) = svgp(sizes), data()
    step = step_graph(model, (X, Y))
    predict = tf.function(lambda: model.predict_f(X), autograph=False).get_concrete_function()
    for graph in (step, predict):
        found = [
            operation
            for operation in graph.graph.get_operations()
            if any(name in operation.type for name in OF_MATRICES)
        ]
        # None in functions within, whose shapes are not seen here.
        assert len(found) == count_ops(graph, OF_MATRICES)
        uses = 1 if len(sizes) > 1 or graph is predict else 2  # of Kuu
        assert count_ops(graph, ("Cholesky",)) == 2 * uses * num_batches
        for operation in found:
            assert max(operation.inputs[0].shape[-2:]) <= 3, operation


def gap(order: int, num_frequencies: int) -> float:
    """The gap between SGPR's bound and the evidence, with waves alone."""
    kernel, (X, Y) = MATERNS[order](lengthscales=0.7), data()
    features = VariationalFourierFeatures(*ENDS, num_frequencies, polynomial_degree=0)
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
