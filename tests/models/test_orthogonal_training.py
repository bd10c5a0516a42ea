"""Optimisers of OrthogonalSVGP, and the optima they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import ActivationFeatures, SphericalHarmonics
from interdomain.kernels import SphericalMatern52
from interdomain.models import OrthogonalSVGP
from interdomain.training import fit
from tests.conformance.helpers import assert_close, value_and_gradients
from tests.conformance.selection import param

from .orthogonal_cases import Blocks
from .test_additive_training import NUM_DATA, data, scipy, train_q_only

__all__ = ["data"]

NOISE = 0.1
RNG = np.random.default_rng(1)
Z = RNG.uniform(-2, 2, size=(7, 2))


def points(likelihood: Any = None, **arguments: Any) -> OrthogonalSVGP:
    return OrthogonalSVGP(
        gpflow.kernels.SquaredExponential(),
        likelihood or gpflow.likelihoods.Gaussian(NOISE),
        InducingPoints(Z[:4]),
        InducingPoints(Z[4:]),
        **arguments,
    )


def zonal() -> SphericalMatern52:
    return SphericalMatern52(weight_variances=[2.0, 0.5])


def harmonics(
    likelihood: gpflow.likelihoods.Likelihood | None = None, **arguments
) -> OrthogonalSVGP:  # noqa: ANN003
    return OrthogonalSVGP(
        zonal(),
        likelihood or gpflow.likelihoods.Gaussian(NOISE),
        SphericalHarmonics(3, [0, 1]),
        InducingPoints(Z[:4]),
        **arguments,
    )


def activations(
    likelihood: gpflow.likelihoods.Likelihood | None = None, **arguments
) -> OrthogonalSVGP:  # noqa: ANN003
    return OrthogonalSVGP(
        zonal(),
        likelihood or gpflow.likelihoods.Gaussian(NOISE),
        ActivationFeatures.random(2, 4, "softplus", 4),
        InducingPoints(Z[:4]),
        **arguments,
    )


BUILD = pytest.mark.parametrize(
    ("build", "whiten"),
    [
        param(points, True, id="points"),
        param(harmonics, False, id="harmonics", quick=False),
        param(activations, True, id="activations", quick=False),
    ],
)


def mean_field_optimum(
    model: OrthogonalSVGP, data: tuple
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Means and covariances of q(u) and q(v') for a Gaussian likelihood, not whitened.

    With W = [Kuu^{-1} Kuf; C_vv^{-1} S_vf] and noise s, log of the posterior is quadratic: its
    precision is ``P = K^{-1} + W W^T / s``. The best mean of a product of two Gaussians is that of
    the whole, ``P^{-1} W y / s``; the best covariances are the inverses of P's diagonal blocks.
    """
    X, Y = data
    pair = Blocks(model.inducing_variable, model.orthogonal_inducing_variable)
    K, columns = Kuu(pair, model.kernel).numpy(), Kuf(pair, model.kernel, X).numpy()
    W = np.linalg.solve(K, columns)
    noise = float(model.likelihood.variance.numpy())
    precision = np.linalg.inv(K) + W @ W.T / noise
    mean, size = np.linalg.solve(precision, W @ Y / noise), int(pair.base.num_inducing)
    blocks = [slice(None, size), slice(size, None)]
    return [mean[b] for b in blocks], [np.linalg.inv(precision[b, b]) for b in blocks]


def moments(model: OrthogonalSVGP) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of both q's, not whitened."""
    means, covariances = [], []
    pair = Blocks(model.inducing_variable, model.orthogonal_inducing_variable)
    K, start = Kuu(pair, model.kernel).numpy(), 0
    for q_mu, q_sqrt in model.variational_parameters:
        rows = slice(start, start + len(q_mu.numpy()))
        root = np.linalg.cholesky(K[rows, rows]) if model.whiten else np.eye(rows.stop - start)
        means.append(root @ q_mu.numpy())
        covariances.append(root @ q_sqrt.numpy()[0] @ q_sqrt.numpy()[0].T @ root.T)
        start = rows.stop
    return means, covariances


@BUILD
def test_natural_gradients_of_size_one(
    build: Callable[..., OrthogonalSVGP], whiten: bool, data: tuple
) -> None:
    """A Jacobi iteration of two blocks: it converges for every positive-definite system, here to
    the best mean-field q of a Gaussian likelihood, and stays there."""
    model = build(gpflow.likelihoods.Gaussian(1.0), whiten=whiten)
    closure = model.training_loss_closure(data, compile=False)
    natural = gpflow.optimizers.NaturalGradient(gamma=1.0)
    step = tf.function(
        lambda: natural.minimize(closure, model.variational_parameters), autograph=False
    )
    expected = mean_field_optimum(model, data)
    step()
    # The covariances depend on no other q: they are there at once.
    assert_close(moments(model)[1], expected[1], rtol=1e-8)
    assert np.max(np.abs(moments(model)[0][0] - expected[0][0])) > 1e-3
    for _ in range(200):  # the error falls by a factor of 0.88 a step, or more
        step()
    assert_close(moments(model), expected, rtol=1e-8)
    best = float(model.elbo(data))
    step()
    assert float(model.elbo(data)) == pytest.approx(best, rel=1e-12)
    variables = [p.unconstrained_variable for pair in model.variational_parameters for p in pair]
    _, gradients = value_and_gradients(lambda: model.elbo(data), variables)
    assert max(float(np.max(np.abs(g))) for g in gradients) < 1e-6


@pytest.mark.parametrize(
    ("build", "size"),
    [param(points, 0.5, id="points", quick=False), param(harmonics, 0.2, id="harmonics")],
)
def test_minibatches_of_labels(
    build: Callable[..., OrthogonalSVGP], size: float, data: tuple
) -> None:
    """The bound of all the data rises, and stays finite. (Steps for both q's at once overshoot
    where they explain the same: the harmonics and points here diverge with a size of 0.5.)"""
    labels = data[0], (data[1] > 0).astype(float)
    model = build(gpflow.likelihoods.Bernoulli(), num_data=NUM_DATA)
    before = float(model.elbo(labels))
    fit(model, labels, steps=40, batch_size=12, natural_gradient=size, progress=False)
    assert float(model.elbo(labels)) > before + 5


NATURAL_GRADIENTS = {"natural_gradient": 0.3, "learning_rate": 0.02}


@pytest.mark.parametrize(
    ("options", "variant"),
    [
        param(NATURAL_GRADIENTS, "solve", id="natural-gradients-solve", quick=False),  # two q's
        param(NATURAL_GRADIENTS, "odvgp", id="natural-gradients-odvgp", quick=False),  # one
        param({"method": "l-bfgs"}, "odvgp", id="l-bfgs-odvgp"),
    ],
)
def test_fit(options: dict, variant: str, data: tuple) -> None:
    model = activations(variant=variant, num_data=NUM_DATA)
    before, values = float(model.elbo(data)), gpflow.utilities.read_values(model)
    fit(model, data, steps=25, progress=False, **options)
    assert float(model.elbo(data)) > before + 5
    for path, value in gpflow.utilities.read_values(model).items():
        assert np.any(value != values[path]), f"{path} has not moved"


@pytest.mark.full
def test_not_below_the_svgp_with_the_same_base(data: tuple) -> None:
    """It starts where the SVGP ended, and what v' adds goes up from there."""
    base = harmonics()
    svgp = gpflow.models.SVGP(base.kernel, base.likelihood, base.inducing_variable)
    train_q_only(base)
    reached = scipy(svgp, data, iterations=200)
    for variant in ("solve", "odvgp"):
        model = harmonics(variant=variant)
        model.kernel, model.likelihood = svgp.kernel, svgp.likelihood
        model.q_mu.assign(svgp.q_mu)
        model.q_sqrt.assign(svgp.q_sqrt)
        assert float(model.elbo(data)) == pytest.approx(reached, rel=1e-12)
        train_q_only(model)
        assert scipy(model, data, iterations=200) > reached + 1e-2


@pytest.mark.full
def test_more_than_odvgp(data: tuple) -> None:
    """A covariance of q(v') of its own can only help: ODVGP's optimum is a point of SOLVE-GP's."""
    elbos = {}
    for variant in ("odvgp", "solve"):
        model = points(variant=variant)
        train_q_only(model)
        elbos[variant] = scipy(model, data, iterations=300)
    assert elbos["solve"] > elbos["odvgp"] + 1e-2
