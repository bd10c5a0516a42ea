"""The terms of a posterior variance add up to it, and are what they are called."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints, InducingVariables
from gpflow.kernels import RBF, Kernel

from interdomain.diagnostics import variance_terms
from interdomain.diagnostics.variance import VarianceTerms
from interdomain.models import AdditiveSVGP, OrthogonalSVGP
from tests.conformance.cases import (
    arc_cosine,
    harmonic_rotation,
    relu_units,
    softplus_units,
    sum_with_points,
)

rng = np.random.default_rng(0)
Z = rng.normal(size=(5, 2))
P = 2


def points() -> tuple[Kernel, InducingVariables]:
    return RBF(1.3, [0.8, 1.2]), InducingPoints(Z)


def rows(count: int, seed: int, columns: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, columns))


def randomise(*parameters: gpflow.Parameter | None) -> None:
    """Values of q at random: full roots are triangular, diagonal ones positive."""
    for parameter in parameters:
        if parameter is not None:
            noise = rng.normal(size=parameter.shape)
            parameter.assign(np.tril(noise) if noise.ndim == 3 else 0.1 + np.abs(noise))


def checked_terms(model: gpflow.models.SVGP, X: np.ndarray) -> VarianceTerms:
    """Those at X, which add up to the variance."""
    terms, variance = variance_terms(model, X), model.predict_f(X)[1].numpy()
    assert all(term.shape == (30, P) for term in terms)
    total = terms.prior - terms.explained + terms.uncertain
    total += terms.orthogonal_uncertain - terms.orthogonal_explained
    for value in (total, terms.variance):
        np.testing.assert_allclose(value, variance, rtol=1e-10, atol=1e-10)
    return terms


@pytest.mark.parametrize(
    ("case", "columns", "whiten", "q_diag"),
    [
        (points, 2, False, False),
        (softplus_units, 4, True, False),
        (arc_cosine, 3, True, True),
        (harmonic_rotation, 2, False, True),
        (sum_with_points, 2, True, False),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_svgp(case: Any, columns: int, whiten: bool, q_diag: bool) -> None:
    (kernel, iv), X = case(), rows(30, 1, columns)
    likelihood = gpflow.likelihoods.Gaussian()
    model = gpflow.models.SVGP(
        kernel, likelihood, iv, num_latent_gps=P, whiten=whiten, q_diag=q_diag
    )
    randomise(model.q_mu, model.q_sqrt)
    terms = checked_terms(model, X)
    assert not np.any(terms.orthogonal_explained) and not np.any(terms.orthogonal_uncertain)
    np.testing.assert_allclose(terms.prior[:, 1], kernel(X, full_cov=False), rtol=1e-12)
    # With S = 0, what is left is what u does not explain.
    model.q_sqrt.assign(1e-12 * tf.ones_like(model.q_sqrt) if q_diag else 0 * model.q_sqrt)
    unexplained = model.predict_f(X)[1].numpy()
    np.testing.assert_allclose(terms.prior - terms.explained, unexplained, atol=1e-10)


@pytest.mark.parametrize(
    ("case", "columns", "whiten", "q_diag", "variant"),
    [
        (points, 2, False, False, "solve"),
        (relu_units, 3, True, True, "solve"),
        (arc_cosine, 3, True, False, "odvgp"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_orthogonal(case: Any, columns: int, whiten: bool, q_diag: bool, variant: str) -> None:
    (kernel, iv), X, other = case(), rows(30, 1, columns), rows(5, 2, columns)
    model = OrthogonalSVGP(
        kernel,
        gpflow.likelihoods.Gaussian(),
        iv,
        InducingPoints(other),
        variant=variant,
        num_latent_gps=P,
        whiten=whiten,
        q_diag=q_diag,
    )
    randomise(model.q_mu, model.q_sqrt, model.q_sqrt_orthogonal)
    terms = checked_terms(model, X)
    assert np.all(terms.orthogonal_explained > 0)
    if variant == "odvgp":
        np.testing.assert_array_equal(terms.orthogonal_uncertain, terms.orthogonal_explained)
    else:
        # S_fv S_vv^{-1} S_vf by dense algebra; S is what the base leaves.
        both = np.concatenate([X, other])
        base = gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(), iv, whiten=True)
        base.q_sqrt.assign(0 * base.q_sqrt)
        S = base.predict_f(both, full_cov=True)[1].numpy()[0]
        S_fv, S_vv = S[:30, 30:], S[30:, 30:] + 1e-6 * np.eye(5)
        expected = np.einsum("nk,nk->n", S_fv, np.linalg.solve(S_vv, S_fv.T).T)
        np.testing.assert_allclose(terms.orthogonal_explained[:, 0], expected, rtol=1e-6, atol=1e-9)


def test_errors() -> None:
    kernel, iv = harmonic_rotation()
    with pytest.raises(
        ValueError, match="an SVGP with one q.u. .*found AdditiveSVGP with .*; pass"
    ):
        variance_terms(AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(), iv), rows(3, 0))
