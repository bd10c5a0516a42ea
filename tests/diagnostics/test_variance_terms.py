"""The terms of a posterior variance add up to it, and are what they are called."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import RBF, Kernel

from interdomain.diagnostics import VarianceTerms, variance_terms
from interdomain.inducing_variables import (
    ActivationFeatures,
    HarmonicInducingPoints,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.kernels import ArcCosine, HarmonicKernel, SphericalMatern52
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from interdomain.transforms import Rotation

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Z = rng.normal(size=(5, 2))
P = 2


def points() -> tuple[Kernel, InducingVariables]:
    return RBF(1.3, [0.8, 1.2]), InducingPoints(Z)


def activation_features() -> tuple[Kernel, InducingVariables]:
    return SphericalMatern52(variance=1.3), ActivationFeatures.random(2, 6, "relu", 5)


def harmonics() -> tuple[Kernel, InducingVariables]:
    kernel = ArcCosine(variance=0.7)
    return kernel, SphericalHarmonics.for_kernel(kernel, 2, 2)


def blocks() -> tuple[Kernel, InducingVariables]:
    kernel = HarmonicKernel(RBF(1.3, 0.8), Rotation(4))
    return kernel, HarmonicInducingPoints.for_kernel(kernel, Z)


def summed() -> tuple[Kernel, InducingVariables]:
    first, iv = points()
    return first + ArcCosine(), SumInducingVariables([iv, ActivationFeatures(np.eye(3), "relu", 2)])


def randomise(*parameters: gpflow.Parameter | None) -> None:
    """Values of q at random: full roots are triangular, diagonal ones positive."""
    for parameter in parameters:
        if parameter is not None:
            noise = rng.normal(size=parameter.shape)
            parameter.assign(np.tril(noise) if noise.ndim == 3 else 0.1 + np.abs(noise))


def checked_terms(model: gpflow.models.SVGP) -> VarianceTerms:
    """Those at X, which add up to the variance."""
    terms, variance = variance_terms(model, X), model.predict_f(X)[1].numpy()
    assert all(term.shape == (30, P) for term in terms)
    total = terms.prior - terms.explained + terms.uncertain
    total += terms.orthogonal_uncertain - terms.orthogonal_explained
    for value in (total, terms.variance):
        np.testing.assert_allclose(value, variance, rtol=1e-10, atol=1e-10)
    return terms


@pytest.mark.parametrize(
    ("case", "whiten", "q_diag"),
    [
        (points, False, False),
        (activation_features, True, False),
        (harmonics, True, True),
        (blocks, False, True),
        (summed, True, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_svgp(case: object, whiten: bool, q_diag: bool) -> None:
    kernel, iv = case()
    likelihood = gpflow.likelihoods.Gaussian()
    model = gpflow.models.SVGP(
        kernel, likelihood, iv, num_latent_gps=P, whiten=whiten, q_diag=q_diag
    )
    randomise(model.q_mu, model.q_sqrt)
    terms = checked_terms(model)
    assert not np.any(terms.orthogonal_explained) and not np.any(terms.orthogonal_uncertain)
    np.testing.assert_allclose(terms.prior[:, 1], kernel(X, full_cov=False), rtol=1e-12)
    # With S = 0, what is left is what u does not explain.
    model.q_sqrt.assign(1e-12 * tf.ones_like(model.q_sqrt) if q_diag else 0 * model.q_sqrt)
    unexplained = model.predict_f(X)[1].numpy()
    np.testing.assert_allclose(terms.prior - terms.explained, unexplained, atol=1e-10)


@pytest.mark.parametrize(
    ("case", "whiten", "q_diag", "variant"),
    [
        (points, False, False, "solve"),
        (activation_features, True, True, "solve"),
        (harmonics, True, False, "odvgp"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_orthogonal(case: object, whiten: bool, q_diag: bool, variant: str) -> None:
    kernel, iv = case()
    model = OrthogonalSVGP(
        kernel,
        gpflow.likelihoods.Gaussian(),
        iv,
        InducingPoints(Z + 1.0),
        variant=variant,
        num_latent_gps=P,
        whiten=whiten,
        q_diag=q_diag,
    )
    randomise(model.q_mu, model.q_sqrt, model.q_sqrt_orthogonal)
    terms = checked_terms(model)
    assert np.all(terms.orthogonal_explained > 0)
    if variant == "odvgp":
        np.testing.assert_array_equal(terms.orthogonal_uncertain, terms.orthogonal_explained)
    else:
        # S_fv S_vv^{-1} S_vf by dense algebra; S is what the base leaves.
        both = np.concatenate([X, Z + 1.0])
        base = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), iv, whiten=True)
        base.q_sqrt.assign(0 * base.q_sqrt)
        S = base.predict_f(both, full_cov=True)[1].numpy()[0]
        S_fv, S_vv = S[:30, 30:], S[30:, 30:] + 1e-6 * np.eye(5)
        expected = np.einsum("nk,nk->n", S_fv, np.linalg.solve(S_vv, S_fv.T).T)
        np.testing.assert_allclose(terms.orthogonal_explained[:, 0], expected, rtol=1e-6, atol=1e-9)


def test_errors() -> None:
    likelihood = gpflow.likelihoods.Gaussian()
    with pytest.raises(ValueError, match="an SVGP with one q.u., found AdditiveSVGP; pass"):
        variance_terms(AdditiveSVGP(blocks()[0], likelihood, blocks()[1]), X)
