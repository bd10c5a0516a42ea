"""Any likelihood with splines, against the dense passes and the bound of a stock SVGP."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.inducing_variables import SumInducingVariables
from interdomain.kernels import FiniteRank
from interdomain.linalg.spline_grid import SplineGrid
from interdomain.models import DualSVGP
from interdomain.sums.splines import Splines
from tests.sums.test_splines import RNG, X, features, product

pytestmark = pytest.mark.usefixtures("no_jitter")
F = 2 * np.sin(5 * X[:, :1]) * X[:, 1:2]
COUNTS = RNG.poisson(np.exp(np.hstack([F, -F]))).astype(float)
CASES = {
    "poisson": (gpflow.likelihoods.Poisson(), COUNTS[:, :1]),
    "two latent GPs": (gpflow.likelihoods.Poisson(), COUNTS),
    "bernoulli": (gpflow.likelihoods.Bernoulli(), (F > 0).astype(float)),
    "student": (gpflow.likelihoods.StudentT(scale=0.2), F + 0.3 * RNG.standard_t(2, size=F.shape)),
}


@pytest.mark.parametrize("name", CASES)
def test_passes(name: str, monkeypatch: Any) -> None:
    likelihood, Y = CASES[name]
    latents = Y.shape[1]
    splines, few = features(7, 6), features(5)
    kernel = product(0, 1) if name == "bernoulli" else FiniteRank(product(0, 1), splines)
    inducing_variable = SumInducingVariables([few, splines])
    mean = gpflow.functions.Linear(np.full([3, latents], 0.1), np.full(latents, 0.2))

    def results() -> list[Any]:
        parts = product(2) + kernel, likelihood, inducing_variable
        model = DualSVGP((X, Y), *parts, mean_function=mean)
        first = model.pass_over_data()
        model.assign_sites(first.clipped)
        second = model.pass_over_data()
        variables = model.kernel.trainable_variables + mean.trainable_variables
        with tf.GradientTape() as tape:
            value = model.maximum_log_likelihood_objective()
        gradients = tape.gradient(value, variables)
        bound = model.to_svgp().elbo((X, Y))
        np.testing.assert_allclose(second.elbo, bound, rtol=1e-9)
        sites = second.sites.shifts, second.sites.variances, second.slopes, second.curvatures
        return [first.elbo, second.elbo, value, *gradients, *model.predict_f(X[:5]), *sites]

    found = results()
    monkeypatch.setattr(Splines, "sums", lambda *_: None)
    for one, other in zip(found, results(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-8)


@pytest.mark.filterwarnings("ignore:inducing_variable. the splines leave")
def test_fit_of_counts(monkeypatch: Any) -> None:
    """From a narrow q and the sites of a subset, to a q that a further pass does not change."""
    splines = features(7, 6)
    kernel = FiniteRank(product(0, 1), splines)
    model = DualSVGP((X, COUNTS[:, :1]), kernel, gpflow.likelihoods.Poisson(), splines)
    before = model.pass_over_data().elbo
    result = idm.fit(model, progress=False, options={"subset_size": 30})
    assert result.reason == "converged" and result.elbo > before + 10
    now = model.pass_over_data()
    with monkeypatch.context() as patch:
        patch.delattr(SplineGrid, "dense")  # of all rows it would be larger than anything else
        assert model.elbo() == model._pass().elbo
    model.assign_sites(now.clipped)
    np.testing.assert_allclose(model.pass_over_data().elbo, now.elbo, atol=0.05)
    np.testing.assert_allclose(model.to_svgp().elbo(model.draw(200)), now.elbo, atol=0.05)
