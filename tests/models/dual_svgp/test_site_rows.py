"""What a feature would add to sites, against dense matrices of all rows."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain.core.finite_rank import block_of
from interdomain.core.pairs import dictionary_of
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import FiniteRank, SphericalMatern32
from interdomain.models.dual_svgp.subset import RowsWithSites
from interdomain.sums.dense import variances_of_q
from interdomain.sums.residuals import _gains
from tests.sums.test_residuals import whitened

NUM_ROWS = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=[NUM_ROWS, 2])
Y = RNG.poisson(2.0, size=[NUM_ROWS, 2]).astype(float)
PRECISIONS, SHIFTS = RNG.uniform(0.1, 2.0, size=[2, NUM_ROWS]), RNG.normal(size=[2, NUM_ROWS])


class Cubic(gpflow.functions.MeanFunction):
    """Linear in no known columns: its values are taken from the sites beforehand."""

    def __call__(self, X: Any) -> tf.Tensor:
        return tf.stack([0.1 * X[:, 0] ** 3, 0.2 * X[:, 1]], axis=1)


SLOPES, LEVELS = np.array([[0.2, -0.1], [0.0, 0.4]]), np.array([0.3, -0.2])
MEANS = {"linear": lambda: gpflow.functions.Linear(SLOPES, LEVELS), "cubic": Cubic}


def make_model(finite_rank: bool, mean: str) -> RowsWithSites:
    kernel = SphericalMatern32(variance=1.5, weight_variances=[1.0, 0.5], bias_variance=0.7)
    few = SphericalHarmonics.for_kernel(kernel, 2, 1)
    prior = FiniteRank(kernel, few) if finite_rank else kernel
    counts = gpflow.likelihoods.Poisson()
    return RowsWithSites((X, Y), prior, counts, few, mean_function=MEANS[mean]())


@pytest.mark.parametrize(("finite_rank", "mean"), [(True, "linear"), (False, "cubic")])
def test_sums_and_gains_are_those_of_dense_matrices(finite_rank: bool, mean: str) -> None:
    """Each latent GP has precisions of its own; and the log normaliser rises by the gain."""
    with gpflow.config.as_context(gpflow.config.Config(jitter=0.0)):
        model = make_model(finite_rank, mean)
        own = dictionary_of(model.inducing_variable, model.kernel)
        atoms = own.neighbours(own.atoms)
        block = own.features(atoms)
        model.take(PRECISIONS, SHIFTS)
        residuals = model.residuals()
        screened, compared = residuals.screen(block), residuals.compare(block)
        A, B = whitened(block, X), whitened((model.inducing_variable, model.kernel), X)
        # Sites of a cubic mean are those of what it leaves.
        mean_values = np.asarray(model.mean_function(X)).T * (mean == "linear")
        for latent, (beta, shift) in enumerate(zip(PRECISIONS, SHIFTS, strict=True)):
            inverse = np.linalg.inv(np.eye(len(B)) + (B * beta) @ B.T)
            slopes = shift - beta * mean_values[latent]
            slopes = slopes - beta * (B.T @ inverse @ B @ slopes)
            cross = (A * beta) @ B.T
            precision = np.eye(len(A)) + (A * beta) @ A.T - cross @ inverse @ cross.T
            squares = A**2 @ beta
            for sums in (screened, compared):
                np.testing.assert_allclose(sums.products[:, latent], A @ slopes, atol=1e-10)
                np.testing.assert_allclose(sums.squares[:, latent], squares, rtol=1e-10)
            np.testing.assert_allclose(compared.precisions[latent], precision, atol=1e-10)
        charge = (not finite_rank) * compared.squares
        diagonals = np.diagonal(compared.precisions, axis1=1, axis2=2).T
        gains = _gains(compared.products, diagonals, charge)
        (best,) = compared.best(own.owners(atoms), 1, not finite_rank, 0.0)
        assert best == int(np.argmax(gains))
        before = float(model.maximum_log_likelihood_objective())
        grown = np.concatenate([own.atoms, atoms[[best]]])
        model.inducing_variable, model.kernel = block_of(own, grown)
        after = float(model.maximum_log_likelihood_objective())
    assert after - before == pytest.approx(gains[best], abs=1e-9)


# What of the moments of f is computed outside of TensorFlow.


def test_variances_by_triangles() -> None:
    rng = np.random.default_rng(0)
    for size, dtype in ((1, float), (300, float), (300, np.float32)):
        root = np.tril(rng.normal(size=(2, size, size))).astype(dtype)
        whitened = rng.normal(size=(size, 17)).astype(dtype)
        covariance = np.einsum("lik,ljk->lij", root, root, dtype=np.float64)
        expected = np.einsum("in,lij,jn->nl", whitened, covariance, whitened, dtype=np.float64)
        found = variances_of_q(root, whitened)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype is float else 1e-4)


def test_a_q_that_is_far_off_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    found = variances_of_q(np.full([1, 1, 1], 1e200), np.full([1, 3], 1e200))
    assert np.all(np.isinf(found)) and not recwarn.list
