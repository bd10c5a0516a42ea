"""Space and time in models of any likelihood, against the same features made dense."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods
from gpflow.kernels import Matern52

import interdomain as idm
from interdomain.models import DualSVGP, StructuredSGPR
from interdomain.models.dual_svgp.subset import RowsWithSites
from interdomain.sums import features as features_of_rows
from interdomain.sums.chain.sums import ChainSums
from tests.sums.test_space_time import (
    NEW,
    RNG,
    SIGNAL,
    Y,
    several,
    splines,
    stations,
    term,
    time,
)
from tests.sums.test_space_time import X as ROWS

pytestmark = pytest.mark.usefixtures("no_jitter")

X = ROWS
COUNTS = RNG.poisson(np.exp(0.5 * SIGNAL[:, :1])).astype(float)
LABELS = (Y[:, :1] > 0).astype(float)
SPIKES = SIGNAL[:, :1] + 0.2 * RNG.standard_t(3, size=[180, 1])

MODELS: dict[str, tuple[Callable[[], Any], np.ndarray]] = {
    "counts": (likelihoods.Poisson, COUNTS),
    "labels": (likelihoods.Bernoulli, LABELS),
    "spikes": (lambda: likelihoods.StudentT(0.3, df=4.0), SPIKES),
    "two outputs": (lambda: likelihoods.StudentT(0.3, df=4.0), Y),
    "two functions": (likelihoods.HeteroskedasticTFPConditional, Y[:, :1]),
}


def with_border() -> tuple[Any, Any]:
    """Stations and waves, each times splines; splines alone; and a border of waves."""
    return several()


def with_stations() -> tuple[Any, Any]:
    return term(stations(), time(Matern52), splines(3))


def model_of(
    name: str,
    make: Any = with_border,
    kind: Any = DualSVGP,
    *,
    is_dense: bool,
    monkeypatch: Any,
    **options: Any,
) -> DualSVGP:
    """The model; if it is dense, its features have no structure."""
    likelihood, targets = MODELS[name]
    prior, inducing_variable = make()
    with monkeypatch.context() as patch:
        if is_dense:
            patch.setattr(features_of_rows, "structure_of", lambda *block: None)
        model = kind((X, targets), prior, likelihood(), inducing_variable, **options)
        assert isinstance(model._features.sums, ChainSums) != is_dense
    return model


def assert_equal(one: DualSVGP, other: DualSVGP, rtol: float = 1e-7) -> None:
    np.testing.assert_allclose(one.elbo(), other.elbo(), rtol=rtol)
    for options in ({}, {"full_cov": True}):
        pairs = zip(one.predict_f(NEW, **options), other.predict_f(NEW, **options), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("make", [with_border, with_stations])
@pytest.mark.parametrize("name", MODELS)
def test_passes(name: str, make: Any, monkeypatch: Any) -> None:
    """The bound and predictions at a narrow q, at the start, and after steps."""
    models = []
    for is_dense in (False, True):
        mean = gpflow.functions.Linear(np.full([4, 1], 0.1), [0.2])
        model = model_of(name, make, is_dense=is_dense, monkeypatch=monkeypatch, mean_function=mean)
        model.shrink_q(0.3)
        models.append(model)
    np.testing.assert_allclose(*(model.elbo() for model in models), rtol=1e-7)
    for model in models:
        model.start()
    np.testing.assert_allclose(*(model.elbo() for model in models), rtol=1e-7)
    for _ in range(3):
        for model in models:
            model.assign_sites(model.sites.mixed(model.pass_over_data().clipped, 0.7))
    assert_equal(*models)


@pytest.mark.parametrize("make", [with_border, with_stations])
def test_objective_between_passes(make: Any, monkeypatch: Any) -> None:
    """Log Z and its gradients. Dense features of stations depend on the kernel: the dense model
    has the sites of the rows."""
    found = []
    sites = RNG.uniform(0.1, 3.0, size=[2, 180]), RNG.normal(size=[2, 180])
    for is_dense in (False, True):
        mean = gpflow.functions.Linear(np.full([4, 2], 0.1), [0.2, 0.3])
        options = {"is_dense": is_dense, "monkeypatch": monkeypatch, "mean_function": mean}
        model: Any = model_of("two outputs", make, RowsWithSites, **options)
        assert bool(model.feature_parameters) == is_dense
        model.take(*sites)
        model.assign_sites(model._first_sites())
        with tf.GradientTape() as tape:
            value = model.maximum_log_likelihood_objective()
        gradients = tape.gradient(value, model.kernel.trainable_variables)
        slopes = model.slopes_of_mean(mean.trainable_variables)
        found.append([value, *gradients, *slopes])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def assert_residuals(model: Any) -> None:
    """The mean of the weights gives the posterior mean, and what is left of the targets."""
    np.testing.assert_allclose(model.explained(NEW), model.predict_f(NEW)[0], rtol=1e-8, atol=1e-9)
    features = gpflow.covariances.Kuf(model.inducing_variable, model.kernel, X).numpy()
    targets = np.column_stack([Y, X, np.ones(180)])
    targets[:, :2] -= (found := model.residual_sums())[1]
    matrix = gpflow.covariances.Kuu(model.inducing_variable, model.kernel).numpy()
    products = features @ targets
    solved = np.linalg.solve(0.1 * matrix + features @ features.T, products)
    left = targets.T @ targets - products.T @ solved
    np.testing.assert_allclose(found[0], left, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("make", [with_border, with_stations])
def test_gaussian_noise(make: Any) -> None:
    """One pass from any q gives the model of regression."""
    prior, inducing_variable = make()
    mean = gpflow.functions.Linear(np.full([4, 2], 0.1), [0.2, 0.3])
    parts = {"mean_function": mean, "charge": "trace", "noise_variance": 0.1}
    right = StructuredSGPR((X, Y), prior, inducing_variable, **parts)
    likelihood = likelihoods.Gaussian(0.1)
    model = DualSVGP((X, Y), prior, likelihood, inducing_variable, mean_function=mean)
    model.shrink_q(0.5)
    model.assign_sites(model.pass_over_data().clipped)
    np.testing.assert_allclose(model.elbo(), right.elbo(), rtol=1e-9)
    assert_residuals(right)
    for options in ({}, {"full_cov": True}):
        pairs = zip(model.predict_f(NEW, **options), right.predict_f(NEW, **options), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["counts", "spikes"])
def test_fit(name: str, monkeypatch: Any) -> None:
    """From the sites of a subset to a q that a further pass does not change, and whose bound is
    that of GPflow's model."""
    model = model_of(name, with_stations, is_dense=False, monkeypatch=monkeypatch)
    before = model.elbo()
    result = idm.fit(model, progress=False, options={"subset_size": 40})
    assert result.reason == "converged" and result.elbo > before
    assert not result.frozen
    now = model.pass_over_data()
    model.assign_sites(now.clipped)
    np.testing.assert_allclose(model.pass_over_data().elbo, now.elbo, atol=0.05)
    svgp = model.to_svgp()
    assert type(svgp).elbo is gpflow.models.SVGP.elbo
    np.testing.assert_allclose(svgp.elbo((X, MODELS[name][1])), model.elbo(), rtol=1e-7)
