"""The beginning at the optimum against SGPR, and against slopes that vanish there."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.likelihoods import Bernoulli, Gaussian

import interdomain as idm
from interdomain.training import start_at_optimum

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, [80, 2])
Y = np.hstack([np.sin(4 * X[:, :1]), X[:, 1:]]) + 0.1 * RNG.normal(size=[80, 2])
MEAN = gpflow.mean_functions.Constant([0.2, -0.1])


def parts(name: str) -> tuple[Any, Any]:
    if name == "points":
        return gpflow.kernels.Matern52(lengthscales=0.7), X[:9].copy()
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(2), lengthscale=0.6)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, max_degree=4)
    return kernel, harmonics


def svgp(name: str, likelihood: Any = None, **arguments: Any) -> gpflow.models.SVGP:
    kernel, features = parts(name)
    return gpflow.models.SVGP(
        kernel,
        Gaussian(0.05) if likelihood is None else likelihood,
        features,
        num_latent_gps=2,
        mean_function=MEAN,
        **arguments,
    )


@pytest.mark.parametrize(("name", "whiten"), [("points", False), ("harmonics", True)])
def test_on_all_rows_the_bound_is_that_of_sgpr(name: str, whiten: bool) -> None:
    model = svgp(name, whiten=whiten)
    start_at_optimum(model, (X, Y))
    kernel, features = parts(name)
    exact = gpflow.models.SGPR(
        (X, Y), kernel, features, mean_function=MEAN, noise_variance=0.05, num_latent_gps=2
    )
    # SGPR adds GPflow's jitter to a Kuu that here is diagonal, and has none.
    rtol = 1e-8 if name == "points" else 1e-5
    np.testing.assert_allclose(model.elbo((X, Y)), exact.elbo(), rtol=rtol)


@pytest.mark.parametrize(
    ("name", "whiten", "rows"),
    [("points", False, 80), ("points", True, 6), ("harmonics", False, 6), ("harmonics", True, 80)],
)
def test_a_diagonal_q_has_no_slope_there(name: str, whiten: bool, rows: int) -> None:
    """Of more rows than features, and of fewer."""
    model = svgp(name, whiten=whiten, q_diag=True)
    data = X[:rows], Y[:rows]
    start_at_optimum(model, data)
    with tf.GradientTape() as tape:
        bound = model.elbo(data)
    variables = [p.unconstrained_variable for p in (model.q_mu, model.q_sqrt)]
    for slope in tape.gradient(bound, variables):
        np.testing.assert_allclose(slope, np.zeros(slope.shape), atol=1e-7 * abs(bound))


def test_noise_that_depends_on_x() -> None:
    noise = Gaussian(scale=gpflow.functions.Linear(A=[[0.1], [0.0]], b=[0.3]))
    model = svgp("points", noise)
    start_at_optimum(model, (X, Y))
    with tf.GradientTape() as tape:
        bound = model.elbo((X, Y))
    for slope in tape.gradient(bound, [model.q_mu.unconstrained_variable]):
        np.testing.assert_allclose(slope, np.zeros(slope.shape), atol=1e-7 * abs(bound))


def test_some_rows_the_same_for_a_seed() -> None:
    models = [svgp("points") for _ in range(3)]
    for model, seed in zip(models, (0, 0, 1), strict=True):
        start_at_optimum(model, (X, Y), subset_size=20, seed=seed)
    first, same, other = (np.asarray(model.q_mu) for model in models)
    np.testing.assert_array_equal(first, same)
    assert np.max(np.abs(first - other)) > 1e-3
    chosen = np.sort(np.random.default_rng(0).permutation(80)[:20])
    alone = svgp("points")
    start_at_optimum(alone, (X[chosen], Y[chosen]))
    np.testing.assert_array_equal(first, np.asarray(alone.q_mu))


def test_what_it_cannot_do() -> None:
    shared = gpflow.kernels.SharedIndependent(gpflow.kernels.Matern52(), output_dim=2)
    of_two = gpflow.models.SVGP(shared, Gaussian(0.1), X[:5].copy(), num_latent_gps=2)
    for model, change, message in [
        (svgp("points", Bernoulli()), {}, r"model\.likelihood .* found Bernoulli; .*CollapsedSVGP"),
        (of_two, {}, r"model\.kernel must have one output"),
        (
            gpflow.models.SGPR((X, Y), *parts("points")),
            {},
            "must be a gpflow.models.SVGP, found SG",
        ),
        (svgp("points"), {"data": (X, np.where(Y == Y[3, 0], np.nan, Y))}, "NaN or .* 1 of 80"),
        (svgp("points"), {"subset_size": 0}, "subset_size"),
    ]:
        with pytest.raises(ValueError, match=message):
            start_at_optimum(model, **{"data": (X, Y), **change})
