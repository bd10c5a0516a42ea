"""DualSVGP and GPflow's models of rows that are linear functionals of f."""

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.functions import Constant
from gpflow.likelihoods import Gaussian, Poisson, SwitchedLikelihood

import interdomain as idm
from tests.functional_parts import (
    FUNCTIONALS,
    KINDS,
    NEW,
    NOISE,
    Parts,
    X,
    Y,
    harmonics,
    points,
    rows_of,
    splines,
    waves,
)

COUNTS = np.round(np.exp(Y))


def fixed(build: Callable[[], Parts], functionals: int = 4) -> Parts:
    kernel, features = rows_of(build, FUNCTIONALS[:functionals])
    gpflow.set_trainable(kernel, False)
    gpflow.set_trainable(features, False)
    return kernel, features


@pytest.mark.parametrize("build", [waves, points, harmonics])
def test_gaussian_sites_equal_the_closed_form(build: Callable[[], Parts]) -> None:
    """A Gaussian for each functional by SwitchedLikelihood, beside ``noise_variance=[...]``; the
    mean function is acted on."""
    kernel, features = fixed(build)
    data = X, np.concatenate([Y + 30 * (X[:, 1:] != 2), X[:, 1:]], axis=1)
    likelihood = SwitchedLikelihood([Gaussian(noise) for noise in NOISE])
    gpflow.set_trainable(likelihood, False)
    mean = Constant(29.0)
    model = idm.models.DualSVGP(data, kernel, likelihood, features, mean_function=mean)
    gpflow.set_trainable(model.mean_function, False)
    idm.fit(model, progress=False, options={"tolerance": 1e-9})
    how = {"noise_variance": NOISE, "mean_function": mean}
    exact = idm.models.StructuredSGPR((X, data[1][:, :1]), kernel, features, **how)
    np.testing.assert_allclose(model.elbo(), exact.elbo(), rtol=1e-7)
    for got, expected in zip(model.predict_f(NEW), exact.predict_f(NEW), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    stock = exact.to_svgp()
    np.testing.assert_allclose(stock.predict_f(NEW), exact.predict_f(NEW), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("build", [waves, splines, harmonics])
def test_counts(build: Callable[[], Parts]) -> None:
    """Poisson rows against GPflow's bound for the same q, and against the dense optimum."""
    few = KINDS < 3
    kernel, features = fixed(build, 3)
    data = X[few], COUNTS[few]
    model = idm.models.DualSVGP(data, kernel, Poisson(), features)
    idm.fit(model, progress=False, options={"tolerance": 1e-9})
    stock = model.to_svgp()
    np.testing.assert_allclose(stock.elbo(data), model.elbo(), rtol=1e-6)
    with tf.GradientTape() as tape:
        bound = stock.elbo(data)
    gradients = tape.gradient(bound, [stock.q_mu.unconstrained_variable])
    assert np.max(np.abs(gradients[0])) < 1e-2
    mean, variance = model.predict_f(NEW[:3])
    for got, expected in zip((mean, variance), stock.predict_f(NEW[:3]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)
    full = model.predict_f(NEW[:3], full_cov=True)[1]
    np.testing.assert_allclose(np.diagonal(full[0]), variance[:, 0], rtol=1e-6)


def test_stock_models_in_minibatches() -> None:
    kernel, features = rows_of(waves)
    mean = kernel.mean_function(Constant(0.5))
    likelihood = SwitchedLikelihood([Gaussian(0.3) for _ in NOISE])
    model = gpflow.models.SVGP(kernel, likelihood, features, mean_function=mean, num_data=60)
    data = X, np.concatenate([Y, X[:, 1:]], axis=1)
    before = float(model.elbo(data))
    idm.fit(model, data, batch_size=20, steps=60, progress=False)
    assert float(model.elbo(data)) > before + 10
    sgpr = gpflow.models.SGPR((X, Y), *rows_of(waves), noise_variance=0.1)
    ours = idm.models.StructuredSGPR((X, Y), *rows_of(waves), noise_variance=0.1)
    np.testing.assert_allclose(sgpr.elbo(), ours.elbo(), rtol=1e-5)  # SGPR's has jitter
    np.testing.assert_allclose(sgpr.predict_f(NEW), ours.predict_f(NEW), rtol=1e-4, atol=1e-5)
