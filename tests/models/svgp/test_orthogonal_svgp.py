"""OrthogonalSVGP equals a stock SVGP over u and v', with a block-diagonal prior and q."""

from functools import partial
from typing import Any

import gpflow
import numpy as np
import pytest
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingPoints

from interdomain.covariances import Kvu
from interdomain.inducing_variables import HarmonicInducingPoints, SphericalHarmonics
from interdomain.models import OrthogonalSVGP
from tests.conformance.helpers import assert_close, assert_refused, value_and_gradients

from .cases import (
    assert_same_bound,
    assert_same_predictions,
    make_data,
    matern,
    mean_field_optimum,
    points,
)
from .orthogonal_cases import BY_NAME, Blocks, block_oracle, make_orthogonal, zonal


@pytest.mark.parametrize(
    ("name", "whiten", "q_diag", "latent"),
    [
        ("points-points", False, False, 2),
        ("harmonics-points", True, True, 2),
        ("harmonics-activations", True, False, 1),
        ("sum-points", False, True, 1),
        ("interval-points", False, False, 2),
    ],
)
def test_bound_gradients_and_predictions(
    name: str, whiten: bool, q_diag: bool, latent: int
) -> None:
    model = make_orthogonal(BY_NAME[name], whiten=whiten, q_diag=q_diag, num_latent_gps=latent)
    joint, X = block_oracle(model), points(4, seed=3)
    assert_same_bound(model, joint, make_data(latent))
    assert_same_predictions(model, joint, X)


@pytest.mark.parametrize(("whiten", "q_diag"), [(True, True), (False, False)])
def test_odvgp_is_solve_with_the_prior_s_covariance(whiten: bool, q_diag: bool) -> None:
    """S_v = C_vv, with its gradient to the kernel if q is not whitened."""
    make = BY_NAME["points-points"]
    model = make_orthogonal(make, whiten=whiten, q_diag=q_diag, num_latent_gps=2, variant="odvgp")
    assert model.q_sqrt_orthogonal is None and len(model.variational_parameters) == 1
    joint = block_oracle(model)
    assert_same_bound(model, joint, make_data(2))
    assert_same_predictions(model, joint, points(4, seed=3))


def test_odvgp_s_own_equations() -> None:
    """Salimbeni et al. 2018, eqs. 6-8 for coupled bases (their Kb, Sb and Ka): a mean over u and v
    with weights a_v, and a covariance over u alone. Here a_v = C_vv^{-1} m_v."""
    model = make_orthogonal(BY_NAME["points-points"], whiten=False, variant="odvgp")
    model.mean_function = gpflow.mean_functions.Zero()
    u, v, k = model.inducing_variable, model.orthogonal_inducing_variable, model.kernel
    X, data = points(6, seed=3), make_data()
    Ku, Kv = Kuu(u, k).numpy(), Kuu(v, k).numpy()
    Kux, Kvx, C = Kuf(u, k, X).numpy(), Kuf(v, k, X).numpy(), Kvu(v, u, k).numpy()
    a_v = np.linalg.solve(Kv - C @ np.linalg.solve(Ku, C.T), model.q_mu_orthogonal.numpy())
    S = model.q_sqrt.numpy()[0] @ model.q_sqrt.numpy()[0].T
    a_u = np.linalg.solve(Ku, model.q_mu.numpy() - C.T @ a_v)
    mean = Kux.T @ a_u + Kvx.T @ a_v
    P = np.linalg.solve(Ku, Kux)
    cov = k(X).numpy() - Kux.T @ P + P.T @ S @ P
    assert_close(model.predict_f(X, full_cov=True), (mean, cov[None]))
    # KL: the squared RKHS norm of the mean, and the terms of a covariance over u.
    m_v = model.q_mu_orthogonal.numpy()
    norm = np.vdot(model.q_mu, np.linalg.solve(Ku, model.q_mu.numpy())) + np.vdot(m_v, a_v)
    logs = np.linalg.slogdet(Ku)[1] - np.linalg.slogdet(S)[1]
    kl = (norm + np.trace(np.linalg.solve(Ku, S)) - len(Ku) + logs) / 2
    assert_close(model.prior_kl(), kl)
    assert np.isfinite(model.elbo(data))


# What OrthogonalSVGP refuses.


def test_errors() -> None:
    noise, root = gpflow.likelihoods.Gaussian(), {"q_sqrt_orthogonal": np.eye(3)[None]}
    pair = (InducingPoints(points(size, seed=size)) for size in (4, 3))
    make = partial(OrthogonalSVGP, matern(), noise, *pair)
    pair = SphericalHarmonics(4, [0]), HarmonicInducingPoints(points(2, 3))
    wrong = OrthogonalSVGP(zonal(), noise, *pair)
    prior = "q_sqrt_orthogonal: with variant='odvgp' the covariance .* is the prior's; leave it out"
    pairs = "no covariance between HarmonicInducingPoints and SphericalHarmonics under SphericalM"
    assert_refused(
        [
            (lambda: make(variant="svgp"), "variant must be 'solve' or 'odvgp', found 'svgp'"),
            (lambda: make(variant="odvgp", **root), prior),
            (lambda: wrong.predict_f(points(4)), pairs),
        ]
    )


# Optimisers, and the optima they find.

Z = np.random.default_rng(1).uniform(-2, 2, size=(7, 2))


def at_points(noise_variance: float = 0.1, **arguments: Any) -> OrthogonalSVGP:
    return OrthogonalSVGP(
        gpflow.kernels.SquaredExponential(),
        gpflow.likelihoods.Gaussian(noise_variance),
        InducingPoints(Z[:4]),
        InducingPoints(Z[4:]),
        **arguments,
    )


def blocks(model: OrthogonalSVGP) -> Blocks:
    return Blocks(model.inducing_variable, model.orthogonal_inducing_variable)


def at_optimum(variant: str, data: tuple) -> OrthogonalSVGP:
    model = at_points(variant=variant, whiten=False)
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
        q = [p for name, p in vars(model.q).items() if name.startswith("q_") and p is not None]
        variables = [parameter.unconstrained_variable for parameter in q]
        assert len(variables) == (4 if variant == "solve" else 3)
        elbos[variant], gradients = value_and_gradients(lambda m=model: m.elbo(data), variables)
        assert max(float(np.max(np.abs(g))) for g in gradients) < 1e-8
    # A natural step of both q's stays there.
    closure = model.training_loss_closure(data, compile=False)
    natural, q = gpflow.optimizers.NaturalGradient(1.0), model.variational_parameters
    with disable_check_shapes():  # they want q's of one size
        natural.minimize(closure, q)
    assert float(model.elbo(data)) == pytest.approx(float(elbos["solve"]), rel=1e-12)
    noise = model.likelihood.variance.numpy()
    base, joint = (
        gpflow.models.SGPR(data, model.kernel, features, noise_variance=noise).elbo()
        for features in (model.inducing_variable, blocks(model))
    )
    assert base + 1e-2 < elbos["odvgp"]
    assert elbos["odvgp"] + 1e-2 < elbos["solve"]
    assert elbos["solve"] < joint - 1e-3
