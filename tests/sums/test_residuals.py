"""The gain of a feature to a model, against dense matrices of all rows."""

from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.covariances import Kuf
from scipy.stats import multivariate_normal

from interdomain.core.finite_rank import block_of
from interdomain.core.pairs import dictionary_of
from interdomain.covariances import Kuu_operator
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import FiniteRank, SphericalMatern32
from interdomain.models import StructuredSGPR
from interdomain.sums.residuals import CandidateSums, _gains

NUM_ROWS, NOISE = 40, 0.3
RNG = np.random.default_rng(0)
X = RNG.normal(size=[NUM_ROWS, 2])
Y = np.stack([np.sin(3 * X[:, 0]), X[:, 0] * X[:, 1]], axis=1) + 0.1 * RNG.normal(
    size=[NUM_ROWS, 2]
)


def make_model(data: Any = (X, Y), *, finite_rank: bool = True, **arguments: Any) -> StructuredSGPR:
    kernel = SphericalMatern32(variance=1.5, weight_variances=[1.0, 0.5], bias_variance=0.7)
    few = SphericalHarmonics.for_kernel(kernel, 2, 1)
    mean = gpflow.functions.Linear(np.array([[0.2, -0.1], [0.0, 0.4]]), np.array([0.3, -0.2]))
    prior = FiniteRank(kernel, few) if finite_rank else kernel
    arguments = {"charge": "trace", "noise_variance": NOISE, "batch_size": 16} | arguments
    model = StructuredSGPR(data, prior, few, mean_function=mean, **arguments)
    gpflow.set_trainable(kernel, False)
    return model


def whitened(block: Any, rows: np.ndarray = X) -> np.ndarray:
    features, kernel = block
    return Kuf(features, kernel, rows).numpy() / np.sqrt(
        Kuu_operator(features, kernel).diag_part().numpy()[:, None]
    )


def candidates_of(model: StructuredSGPR) -> tuple[Any, np.ndarray, Any]:
    own = dictionary_of(model.inducing_variable, model.kernel)
    atoms = own.neighbours(own.atoms)
    return own, atoms, own.features(atoms)


def left_of(model: StructuredSGPR) -> np.ndarray:
    return Y - model.mean_function(X).numpy()


def test_sums_are_those_of_dense_matrices() -> None:
    model = make_model(lambda: iter([(X[:9], Y[:9]), (X[9:], Y[9:])]))
    _, _, block = candidates_of(model)
    A, B = whitened(block), whitened((model.inducing_variable, model.kernel))
    covariance = B.T @ B + NOISE * np.eye(NUM_ROWS)
    products = A @ np.linalg.solve(covariance, left_of(model))
    squares = np.sum(A**2, axis=1, keepdims=True) / NOISE
    residuals = model.residuals()
    screened, compared = residuals.screen(block), residuals.compare(block)
    for sums in (screened, compared):
        np.testing.assert_allclose(sums.products, products, atol=1e-10)
        np.testing.assert_allclose(sums.squares, squares, rtol=1e-10)
    precision = np.eye(len(A)) + A @ np.linalg.solve(covariance, A.T)
    np.testing.assert_allclose(compared.precisions, precision[None], atol=1e-10)


@pytest.mark.parametrize("finite_rank", [True, False])
def test_the_best_are_those_of_brute_force(finite_rank: bool) -> None:
    """One after the other, each raises the bound most."""
    model = make_model(finite_rank=finite_rank)
    own, atoms, block = candidates_of(model)
    A, B = whitened(block), whitened((model.inducing_variable, model.kernel))
    prior = float(np.sum(model.kernel(X, full_cov=False)))

    def bound(features: np.ndarray) -> float:
        covariance = features.T @ features + NOISE * np.eye(NUM_ROWS)
        density = multivariate_normal(np.zeros(NUM_ROWS), covariance)
        left = 0.0 if finite_rank else prior - np.sum(features**2)
        return float(np.sum(density.logpdf(left_of(model).T)) - left / NOISE)

    expected: list[int] = []
    gains = np.array([bound(np.r_[B, A[[k]]]) for k in range(len(A))]) - bound(B)
    while len(expected) < 3:
        bounds = [bound(np.r_[B, A[[*expected, k]]]) for k in range(len(A))]
        bounds = [-np.inf if k in expected else value for k, value in enumerate(bounds)]
        if max(bounds) <= bound(np.r_[B, A[expected]]):
            break
        expected.append(int(np.argmax(bounds)))
    assert len(expected) == (2 if finite_rank else 3)
    sums, pays = model.residuals().compare(block), not finite_rank
    owners = own.owners(atoms)
    assert sums.best(owners, 3, pays, 0.0) == expected
    # Each by itself; and the bound of a model that has the first.
    diagonal = np.diagonal(sums.precisions[0])[:, None]
    found = _gains(sums.products, diagonal, pays * sums.squares)
    np.testing.assert_allclose(found, gains, atol=1e-9)
    left = 0.0 if finite_rank else (prior - np.sum(B**2)) / NOISE / NUM_ROWS
    model.charge = "log"
    assert model.residuals().price == pytest.approx(1 / (1 + left))
    model.charge = "trace"
    before = model.elbo().numpy()
    assert before == pytest.approx(bound(B), abs=1e-8)
    grown = np.concatenate([own.atoms, atoms[expected[:1]]])
    model.inducing_variable, model.kernel = block_of(own, grown)
    assert model.elbo().numpy() - before == pytest.approx(gains[expected[0]], abs=1e-8)
    # It ends where no other is worth it.
    assert sums.best(owners, 9, pays, float(gains.max()) + 1e-6) == []
    assert sums.best(owners, 9, pays, float(gains.max()) - 1e-6) == expected[:1]


def test_atoms_are_taken_as_a_whole() -> None:
    sums = CandidateSums(np.array([[3.0], [3.0], [2.0]]), np.ones([3, 1]), np.eye(3)[None])
    owners, free = np.array([0, 0, 1]), False
    assert sums.best(owners, 3, free, 0.0) == [0, 1]
    assert sums.best(owners, 2, free, 0.0) == [0]
    assert sums.best(owners, 1, free, 0.0) == [1]


def test_features_that_differ_by_rounding_are_numbers() -> None:
    """Whatever the products have lost, nothing is divided by less than the prior's precision."""
    precisions = np.array([[[-1e-9, 0.0], [0.0, 2.0]]])
    sums = CandidateSums(np.array([[5.0], [2.0]]), np.ones([2, 1]), precisions)
    with np.errstate(all="raise"):
        assert sums.best(np.arange(2), 2, False, 0.0) == [0, 1]
