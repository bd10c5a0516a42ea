"""A family with a new operator runs in every model, with two files and nothing else touched.

The oracle is stock: GPflow's inducing points at the same places, whose Kuu it factorises.
"""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Matern12, SeparateIndependent, SquaredExponential

from interdomain.diagnostics.variance import nystrom_trace_error
from interdomain.inducing_variables import SumInducingVariables
from interdomain.models import AdditiveSVGP, OrthogonalSVGP, StructuredSGPR
from tests.conformance.helpers import assert_close, assert_same_objective, moved, step_graph
from tests.posteriors.graph_ops import count_ops

from .markov_points import MarkovPoints

PLACES = np.array([-1.5, -0.7, -0.1, 0.4, 1.2, 2.0])
RNG = np.random.default_rng(0)
X, XNEW = RNG.normal(size=(9, 1)), RNG.normal(size=(5, 1))
Y = np.sin(X)


# The chain has none; with it, stock points have the same Kuu.
pytestmark = pytest.mark.usefixtures("no_jitter")


def points() -> InducingPoints:
    return InducingPoints(PLACES[:, None])


def svgp(inducing_variable: object, kernel: Matern12, **options: bool) -> gpflow.models.SVGP:
    return gpflow.models.SVGP(
        kernel, gpflow.likelihoods.Gaussian(0.2), inducing_variable, **options
    )


def additive(inducing_variable: object, kernel: Matern12, **options: bool) -> gpflow.models.SVGP:
    """Two chains in one batch, and points."""
    other = InducingPoints(X[:3].copy())
    total = kernel + Matern12(lengthscales=0.5) + SquaredExponential()
    blocks = SumInducingVariables([inducing_variable, inducing_variable, other])
    return AdditiveSVGP(total, gpflow.likelihoods.Gaussian(0.2), blocks, **options)


def orthogonal(inducing_variable: object, kernel: Matern12, **options: bool) -> gpflow.models.SVGP:
    other = InducingPoints(np.array([[-1.1], [0.8]]))
    likelihood = gpflow.likelihoods.Gaussian(0.2)
    return OrthogonalSVGP(kernel, likelihood, inducing_variable, other, **options)


def separate(inducing_variable: object, kernel: Matern12, **options: bool) -> gpflow.models.SVGP:
    """Two outputs; stock points are shared by GPflow's wrapper."""
    if isinstance(inducing_variable, InducingPoints):
        wrap = gpflow.inducing_variables.SharedIndependentInducingVariables
        inducing_variable = wrap(inducing_variable)
    outputs = SeparateIndependent([kernel, Matern12(lengthscales=0.5)])
    return svgp(inducing_variable, outputs, num_latent_gps=2, **options)


@pytest.mark.parametrize(
    ("build", "q_diag", "whiten"),
    [
        (svgp, False, False),
        (additive, True, False),
        (orthogonal, False, True),
        (separate, True, True),
    ],
)
def test_models(build: Callable[..., gpflow.models.SVGP], q_diag: bool, whiten: bool) -> None:
    """Bound, gradients and predictions, cached too."""
    kernel = Matern12(variance=1.3, lengthscales=0.7)
    model, oracle = (
        moved(build(features, kernel, q_diag=q_diag, whiten=whiten))  # to the same q
        for features in (MarkovPoints(PLACES), points())
    )
    data = X, np.tile(Y, [1, model.num_latent_gps])
    stock = tf.autograph.experimental.do_not_convert  # its loop over outputs, which takes seconds
    assert_same_objective(
        lambda: model.elbo(data), stock(lambda: oracle.elbo(data)), kernel.trainable_variables
    )
    for full_cov in (False, True):
        expected = stock(oracle.predict_f)(XNEW, full_cov=full_cov)
        assert_close(model.predict_f(XNEW, full_cov=full_cov), expected)
        assert_close(model.posterior().predict_f(XNEW, full_cov=full_cov), expected)


def test_collapsed_model() -> None:
    kernel = Matern12(variance=1.3, lengthscales=0.7)
    model = StructuredSGPR(
        (X, Y), kernel, MarkovPoints(PLACES), noise_variance=0.2, charge="trace", progress=False
    )
    oracle = gpflow.models.SGPR((X, Y), kernel, points(), noise_variance=0.2)
    assert_same_objective(model.elbo, oracle.elbo, kernel.trainable_variables)
    assert_close(model.posterior().predict_f(XNEW), oracle.predict_f(XNEW))
    error = nystrom_trace_error(kernel, MarkovPoints(PLACES), X)
    assert_close(error, nystrom_trace_error(kernel, points(), X))


def test_nothing_is_factorised() -> None:
    kernel = Matern12()
    for whiten in (True, False):
        model = svgp(MarkovPoints(PLACES), kernel, whiten=whiten)
        names = ("Cholesky", "TriangularSolve", "MatrixInverse")
        assert count_ops(step_graph(model, (X, Y)), names) == 0
