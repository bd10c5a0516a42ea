"""Explained variance: the Nystrom error, the ranking of transformations, terms of variances."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import RBF, Kernel, Matern32

from interdomain.diagnostics import rank_transforms, variance_terms
from interdomain.diagnostics.variance import VarianceTerms, nystrom_trace_error
from interdomain.inducing_variables import (
    HarmonicInducingPoints,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import Convolutional, FiniteRank, HarmonicKernel, SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from interdomain.transforms import Negation, Rotation
from tests.conformance.cases import (
    arc_cosine,
    harmonic_rotation,
    relu_units,
    softplus_units,
    sum_with_points,
)
from tests.conformance.helpers import assert_gradients, compiled

X = np.random.default_rng(0).normal(size=(40, 2))
Z = np.array([[0.9, 0.2], [0.4, -0.8], [-1.1, 1.5]])
Pair = tuple[Kernel, InducingVariables]
exact = pytest.mark.usefixtures("no_jitter")


def unexplained(kernel: Kernel, points: np.ndarray) -> float:
    """tr(Kff - Kfu Kuu^{-1} Kuf) for values of the kernel's own process at points."""
    Kfu = kernel(X, points).numpy()
    return float(np.trace(kernel(X).numpy() - Kfu @ np.linalg.solve(kernel(points).numpy(), Kfu.T)))


def points() -> tuple[Pair, float]:
    kernel = RBF(1.3, [0.8, 1.2])
    return (kernel, InducingPoints(Z)), unexplained(kernel, Z)


def distinct() -> tuple[Pair, float]:
    kernel = HarmonicKernel(Matern32(1.3, [0.8, 1.2]), [Negation(0), Negation(1)])
    places = [scale * Z for scale in (1.0, 1.1, 0.9, 1.2)]
    error = sum(unexplained(k, z) for k, z in zip(kernel.kernels, places, strict=True))
    return (kernel, HarmonicInducingPoints(places)), error


def shared() -> tuple[Pair, float]:
    kernel = HarmonicKernel(RBF(1.3, 0.8), Rotation(3))
    error = sum(unexplained(k, Z) for k in kernel.kernels)
    return (kernel, HarmonicInducingPoints.for_kernel(kernel, Z)), error


def complete() -> tuple[Pair, float]:
    """Features with one variable for each point of the orbits: the errors agree (Theorem 4.1)."""
    kernel = HarmonicKernel(RBF(1.3, 0.8), Rotation(3))
    orbit = tf.reshape(kernel.transform.orbit(Z), [-1, 2]).numpy()
    error = unexplained(kernel.base_kernel, orbit)
    return (kernel, HarmonicInducingPoints.for_kernel(kernel, Z, complete=True)), error


def summed() -> tuple[Pair, float]:
    first, second = HarmonicKernel(RBF(1.3, 0.8), Negation(0)), Matern32(0.5, 1.4)
    blocks = [HarmonicInducingPoints([Z, 1.1 * Z]), InducingPoints(0.9 * Z)]
    error = unexplained(first.kernels[0], Z) + unexplained(first.kernels[1], 1.1 * Z)
    error += unexplained(second, 0.9 * Z)
    return (first + second, SumInducingVariables(blocks)), error


def harmonics() -> tuple[Pair, float]:
    """Enough values of a process of finitely many harmonics determine it: nothing is left."""
    kernel = SphericalMatern32(lengthscale=0.8)
    harmonics = SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=3)
    return (FiniteRank(kernel, harmonics), harmonics), 0.0


PAIRS = [points, distinct, shared, complete, summed, harmonics]


@exact
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.__name__)
def test_trace_error(pair: Callable[[], tuple[Pair, float]]) -> None:
    (kernel, inducing_variable), expected = pair()
    error = nystrom_trace_error(kernel, inducing_variable, X)
    total = tf.reduce_sum(kernel(X, full_cov=False)).numpy()
    np.testing.assert_allclose(error, expected, rtol=1e-9, atol=1e-11 * total)
    assert expected == 0.0 or expected > 0.1
    if pair is shared:
        graph = compiled(lambda x: nystrom_trace_error(kernel, inducing_variable, x), X.shape)
        np.testing.assert_allclose(graph(X), error, atol=1e-10 * total)


@exact
@pytest.mark.parametrize("pair", [distinct, complete], ids=lambda pair: pair.__name__)
def test_gradient_to_the_points(pair: Callable[[], tuple[Pair, float]]) -> None:
    (kernel, inducing_variable), _ = pair()
    assert_gradients(
        lambda: tf.stack([nystrom_trace_error(kernel, inducing_variable, X)]),
        inducing_variable.trainable_variables,
    )


@exact
def test_transformations_that_match_the_data_rank_first() -> None:
    half = np.random.default_rng(1).normal(size=(100, 2)) + [2.0, 0.0]
    data = np.concatenate([half, half * [-1.0, 1.0]])  # symmetric in the first column alone
    matching, elsewhere = Negation(0), Negation(0, centre=6.0)
    both = [matching, Negation(1)]
    kernel = RBF(1.0, 1.0)
    with gpflow.config.as_context(gpflow.config.Config(jitter=1e-10)):
        ranking = rank_transforms(kernel, [None, elsewhere, matching, both], data, num_inducing=6)
        harmonic = HarmonicKernel(kernel, matching)
        points = HarmonicInducingPoints.from_data(harmonic, data, 6)
        plain = nystrom_trace_error(harmonic, points, data)
    errors = [error for _, _, error in ranking]
    assert errors == sorted(errors) and len(errors) == 4
    by_candidate = {str(transforms): (count, error) for transforms, count, error in ranking}
    single, none = by_candidate[str(matching)], by_candidate["None"]
    assert single[1] < 0.8 * by_candidate[str(elsewhere)][1]
    assert single[1] < none[1]
    np.testing.assert_allclose(single[1], plain / 200, rtol=1e-10)
    assert (single[0], none[0]) == (12, 6)
    assert ranking[0][0] is both and ranking[0][1] == 24


@exact
def test_transformations_of_a_convolutional_kernel_are_ranked_by_points_in_patches() -> None:
    """Nothing is left of a function of an image once each of its patches is a point, with or
    without a decomposition; nine pixels as one point, as it was before, are not in that space."""
    images = np.random.default_rng(0).normal(size=(5, 9))
    base = Convolutional(RBF(lengthscales=1.5), (3, 3), (2, 2))
    ranking = rank_transforms(base, [None, Negation()], images, num_inducing=20)
    assert {count for _, count, _ in ranking} == {20, 40}
    assert all(abs(error) < 1e-8 for _, _, error in ranking)
    ((_, _, few),) = rank_transforms(base, [None], images, num_inducing=4)
    assert 1e-4 < few < float(np.mean(base(images, full_cov=False)))


# The terms of a posterior variance add up to it, and are what they are called.


rng = np.random.default_rng(0)
PLACES = rng.normal(size=(5, 2))
P = 2


def inducing_points() -> tuple[Kernel, InducingVariables]:
    return RBF(1.3, [0.8, 1.2]), InducingPoints(PLACES)


def finite_rank() -> tuple[Kernel, InducingVariables]:
    kernel, iv = softplus_units()
    return FiniteRank(kernel, iv), iv


def rows(count: int, seed: int, columns: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, columns))


def randomise(*parameters: gpflow.Parameter | None) -> None:
    """Values of q at random: full roots are triangular, diagonal ones positive."""
    for parameter in parameters:
        if parameter is not None:
            noise = rng.normal(size=parameter.shape)
            parameter.assign(np.tril(noise) if noise.ndim == 3 else 0.1 + np.abs(noise))


def checked_terms(model: gpflow.models.SVGP, X: np.ndarray) -> VarianceTerms:
    """The terms at X, which add up to the variance."""
    terms, variance = variance_terms(model, X), model.predict_f(X)[1].numpy()
    assert all(term.shape == (30, P) for term in terms)
    total = terms.prior - terms.explained + terms.uncertain
    total += terms.orthogonal_uncertain - terms.orthogonal_explained
    for value in (total, terms.variance):
        np.testing.assert_allclose(value, variance, rtol=1e-10, atol=1e-10)
    return terms


@pytest.mark.parametrize(
    ("case", "columns", "whiten", "q_diag"),
    [
        (inducing_points, 2, False, False),
        (softplus_units, 4, True, False),
        (finite_rank, 4, False, True),
        (arc_cosine, 3, True, True),
        (harmonic_rotation, 2, False, True),
        (sum_with_points, 2, True, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_svgp(case: Any, columns: int, whiten: bool, q_diag: bool) -> None:
    (kernel, iv), X = case(), rows(30, 1, columns)
    likelihood = gpflow.likelihoods.Gaussian()
    model = gpflow.models.SVGP(
        kernel, likelihood, iv, num_latent_gps=P, whiten=whiten, q_diag=q_diag
    )
    randomise(model.q_mu, model.q_sqrt)
    terms = checked_terms(model, X)
    assert not np.any(terms.orthogonal_explained) and not np.any(terms.orthogonal_uncertain)
    np.testing.assert_allclose(terms.prior[:, 1], kernel(X, full_cov=False), rtol=1e-12)
    # With S = 0, what is left is what u does not explain.
    model.q_sqrt.assign(1e-12 * tf.ones_like(model.q_sqrt) if q_diag else 0 * model.q_sqrt)
    unexplained = model.predict_f(X)[1].numpy()
    np.testing.assert_allclose(terms.prior - terms.explained, unexplained, atol=1e-10)


@pytest.mark.parametrize(
    ("case", "columns", "whiten", "q_diag", "variant"),
    [
        (inducing_points, 2, False, False, "solve"),
        (relu_units, 3, True, True, "solve"),
        (arc_cosine, 3, True, False, "odvgp"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_orthogonal(case: Any, columns: int, whiten: bool, q_diag: bool, variant: str) -> None:
    (kernel, iv), X, other = case(), rows(30, 1, columns), rows(5, 2, columns)
    options = {"variant": variant, "num_latent_gps": P, "whiten": whiten, "q_diag": q_diag}
    likelihood = gpflow.likelihoods.Gaussian()
    model = OrthogonalSVGP(kernel, likelihood, iv, InducingPoints(other), **options)
    randomise(model.q_mu, model.q_sqrt, model.q_sqrt_orthogonal)
    terms = checked_terms(model, X)
    assert np.all(terms.orthogonal_explained > 0)
    if variant == "odvgp":
        np.testing.assert_array_equal(terms.orthogonal_uncertain, terms.orthogonal_explained)
    else:
        # S_fv S_vv^{-1} S_vf by dense algebra; S is what the base leaves.
        both = np.concatenate([X, other])
        base = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), iv, whiten=True)
        base.q_sqrt.assign(0 * base.q_sqrt)
        S = base.predict_f(both, full_cov=True)[1].numpy()[0]
        S_fv, S_vv = S[:30, 30:], S[30:, 30:] + 1e-6 * np.eye(5)
        expected = np.einsum("nk,nk->n", S_fv, np.linalg.solve(S_vv, S_fv.T).T)
        np.testing.assert_allclose(terms.orthogonal_explained[:, 0], expected, rtol=1e-6, atol=1e-9)


def test_errors() -> None:
    kernel, iv = harmonic_rotation()
    model = AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(), iv)
    with pytest.raises(
        ValueError, match="an SVGP with one q.u. .*found AdditiveSVGP with .*; pass"
    ):
        variance_terms(model, rows(3, 0))
