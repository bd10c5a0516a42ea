"""Optimisers of OrthogonalSVGP, and the optima they find."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.models import OrthogonalSVGP
from interdomain.training import fit
from tests.conformance.helpers import assert_close, value_and_gradients

from .cases import mean_field_optimum
from .orthogonal_cases import Blocks
from .test_additive_svgp import NUM_DATA, data

__all__ = ["data"]

Z = np.random.default_rng(1).uniform(-2, 2, size=(7, 2))


def points(noise_variance: float = 0.1, **arguments: Any) -> OrthogonalSVGP:
    return OrthogonalSVGP(
        gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(noise_variance),
        InducingPoints(Z[:4]),
        InducingPoints(Z[4:]),
        **arguments,
    )


def blocks(model: OrthogonalSVGP) -> Blocks:
    return Blocks(model.inducing_variable, model.orthogonal_inducing_variable)


def moments(model: OrthogonalSVGP) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Of both whitened q's, not whitened."""
    means, covariances = [], []
    K, start = Kuu(blocks(model), model.kernel).numpy(), 0
    for q_mu, q_sqrt in model.variational_parameters:
        rows = slice(start, start + len(q_mu.numpy()))
        root = np.linalg.cholesky(K[rows, rows])
        means.append(root @ q_mu.numpy())
        covariances.append(root @ q_sqrt.numpy()[0] @ q_sqrt.numpy()[0].T @ root.T)
        start = rows.stop
    return means, covariances


def test_natural_gradients_of_size_one(data: tuple) -> None:
    """A Jacobi iteration of two blocks: it converges for every positive-definite system, here to
    the best mean-field q of a Gaussian likelihood, and stays there."""
    model = points(1.0)
    closure = model.training_loss_closure(data, compile=False)
    natural = gpflow.optimizers.NaturalGradient(gamma=1.0)
    step = tf.function(
        lambda: natural.minimize(closure, model.variational_parameters), autograph=False
    )
    expected = mean_field_optimum(model, blocks(model), (4, 3), data)
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


def at_optimum(variant: str, data: tuple) -> OrthogonalSVGP:
    model = points(variant=variant, whiten=False)
    means, covariances = mean_field_optimum(model, blocks(model), (4, 3), data)
    model.q_mu.assign(means[0])
    model.q_sqrt.assign(np.linalg.cholesky(covariances[0])[None])
    model.q_mu_orthogonal.assign(means[1])
    if model.q_sqrt_orthogonal is not None:
        model.q_sqrt_orthogonal.assign(np.linalg.cholesky(covariances[1])[None])
    return model


def test_optima(data: tuple) -> None:
    """v' adds to what the base alone reaches, and a covariance of q(v') of its own adds to that:
    ODVGP's optimum is a point of SOLVE-GP's. Both are below that of a joint q(u, v')."""
    elbos = {}
    for variant in ("odvgp", "solve"):
        model = at_optimum(variant, data)
        q = [p for name, p in vars(model).items() if name.startswith("q_") and p is not None]
        variables = [parameter.unconstrained_variable for parameter in q]
        assert len(variables) == (4 if variant == "solve" else 3)
        elbos[variant], gradients = value_and_gradients(lambda m=model: m.elbo(data), variables)
        assert max(float(np.max(np.abs(g))) for g in gradients) < 1e-8
    noise = model.likelihood.variance.numpy()
    base, joint = (
        gpflow.models.SGPR(data, model.kernel, features, noise_variance=noise).elbo()
        for features in (model.inducing_variable, blocks(model))
    )
    assert base + 1e-2 < elbos["odvgp"]
    assert elbos["odvgp"] + 1e-2 < elbos["solve"]
    assert elbos["solve"] < joint - 1e-3


def test_fit(data: tuple) -> None:
    """By natural gradients; with "odvgp" the mean of q(v') is left to Adam."""
    model = points(variant="odvgp", num_data=NUM_DATA)
    before, values = float(model.elbo(data)), gpflow.utilities.read_values(model)
    fit(model, data, steps=25, progress=False, natural_gradient=0.3, optimizer=0.02)
    assert float(model.elbo(data)) > before + 5
    for path, value in gpflow.utilities.read_values(model).items():
        assert np.any(value != values[path]), f"{path} has not moved"
