"""A structure of sums from outside runs in the models of rows, with one file and nothing else
touched.

The oracle is the same family with dense sums.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern12

import interdomain as idm
from interdomain.kernels import FiniteRank
from tests.conformance.helpers import assert_close

from .chain_sums import ChainPoints, ChainSums
from .markov_points import MarkovPoints

PLACES = np.linspace(-1.6, 1.9, 9)
RNG = np.random.default_rng(0)
X, NEW = RNG.uniform(-2, 2, size=(40, 1)), RNG.uniform(-2.5, 2.5, size=(30, 1))
Y = np.sin(3 * X) + 0.1 * RNG.normal(size=X.shape)
COUNTS = RNG.poisson(np.exp(Y)).astype(float)
KINDS = ChainPoints, MarkovPoints


def regression(kind: Any, *, complete: bool = False, **how: Any) -> idm.models.StructuredSGPR:
    kernel, points = Matern12(variance=1.3, lengthscales=0.7), kind(PLACES)
    kernel = FiniteRank(kernel, points) if complete else kernel
    mean = gpflow.functions.Linear([[0.2]], [0.1])
    return idm.models.StructuredSGPR(
        (X, Y), kernel, points, mean_function=mean, noise_variance=0.2, progress=False, **how
    )


def counts(kind: Any) -> idm.models.DualSVGP:
    kernel, points = Matern12(variance=1.3, lengthscales=0.7), kind(PLACES)
    gpflow.set_trainable(kernel.lengthscales, False)  # the features depend on it
    kernel = FiniteRank(kernel, points)
    likelihood, mean = gpflow.likelihoods.Poisson(), gpflow.functions.Constant([0.3])
    return idm.models.DualSVGP((X, COUNTS), kernel, likelihood, points, mean_function=mean)


@pytest.mark.parametrize("complete", [False, True])
def test_regression(complete: bool) -> None:
    """Bound, gradients and predictions, cached too; parameters, a fit, and batches."""
    model, oracle = (regression(kind, complete=complete) for kind in KINDS)
    assert type(model._features.sums) is ChainSums is not type(oracle._features.sums)
    assert "kernel.lengthscales" in str(model.feature_parameters)
    for some in (model, oracle):
        assert_close(some.posterior().predict_f(NEW), oracle.predict_f(NEW))
    values = []
    for some in (model, oracle):
        with tf.GradientTape() as tape:
            value = some.elbo()
        values.append([value, *tape.gradient(value, some.trainable_variables)])
    assert_close(*values)
    assert_close(model.statistics.sums["targets"], oracle.statistics.sums["targets"])
    for some in (model, oracle):
        assert idm.fit(some, progress=False, options={"subset_size": None}).reason == "converged"
    np.testing.assert_allclose(model.elbo(), oracle.elbo(), rtol=1e-6)
    batches = idm.predict_in_batches(model, NEW, batch_size=7, progress=False)
    assert_close(batches, model.predict_f(NEW))


def test_functions_have_the_moments_of_the_posterior() -> None:
    model = regression(ChainPoints, complete=True)
    drawn = idm.sample_functions(model, 4_000, seed=0)(NEW).numpy()[..., 0]
    mean, variance = (part.numpy()[:, 0] for part in model.predict_f(NEW))
    errors = np.abs(drawn.mean(axis=0) - mean) / np.sqrt(variance / len(drawn))
    assert np.max(errors) < 4.5
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.12)


def test_counts() -> None:
    """A pass is that of dense sums; and after a fit, which trains the variance, too, all is as in
    stock ``SVGP`` with this q."""
    model, dense = (counts(kind) for kind in KINDS)
    assert type(model._features.sums) is ChainSums is not type(dense._features.sums)
    for some in (model, dense):
        some.shrink_q(0.3)
    passes = [some.pass_over_data() for some in (model, dense)]
    np.testing.assert_allclose(passes[0].elbo, passes[1].elbo, rtol=1e-9)
    for some, result in zip((model, dense), passes, strict=True):
        some.assign_sites(result.sites)
    assert_close(model.predict_f(NEW), dense.predict_f(NEW))
    variance = float(model.kernel.kernel.variance.numpy())
    assert idm.fit(model, progress=False).reason == "converged"
    assert abs(float(model.kernel.kernel.variance.numpy()) / variance - 1) > 0.01
    stock = model.to_svgp()
    np.testing.assert_allclose(model.elbo(), stock.elbo((X, COUNTS)), rtol=1e-8)
    batches = idm.predict_in_batches(model, NEW, batch_size=7, progress=False)
    assert_close(batches, stock.predict_f(NEW))
    assert idm.sample_functions(model, 3)(NEW).shape == (3, len(NEW), 1)
