"""Models with a Gaussian likelihood that use Kuu and Kuf by themselves, and SGPMC."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.covariances import Kuf, Kuu

from .cases import FIRST_AND_LAST_KIND, ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .dense_twin import DenseTwin
from .helpers import assert_close, assert_same_objective, make_data, make_inputs, make_svgp
from .selection import (
    cases,
    each_class_quick_each_kind,
    every_case_quick_each_class,
    in_turn,
    param,
)

NOISE = 0.2


def make_pair(case: Case, model_class: type, **options: Any) -> tuple[Any, Any]:
    """The model, and the same one with the same parameters over the dense twin."""
    kernel, inducing_variable = case.build()
    num_outputs = 1 if model_class is gpflow.models.CGLB else 2  # CGLB takes one output only
    data = make_data(case, num_outputs)
    model = model_class(
        data, kernel, inducing_variable=inducing_variable, noise_variance=NOISE, **options
    )
    twin = model_class(data, kernel, inducing_variable=DenseTwin(inducing_variable), **options)
    twin.likelihood = model.likelihood
    return model, twin


def gaussian_log_density(Y: np.ndarray, covariance: np.ndarray) -> float:
    """Of independent columns."""
    zero = np.zeros(len(Y))
    return sum(
        tfp.distributions.MultivariateNormalFullCovariance(zero, covariance).log_prob(y).numpy()
        for y in Y.T
    )


@every_case_quick_each_class
@pytest.mark.filterwarnings("ignore:MultivariateNormalFullCovariance")
def test_bounds_by_brute_force(case: Case) -> None:
    """SGPR's and FITC's objectives from N x N matrices, and what SGPR's lies between: the bound of
    an SVGP with the q(u) of compute_qu, which is the same, and the evidence."""
    sgpr, twin = make_pair(case, gpflow.models.SGPR)
    X, Y = make_data(case, 2)
    kernel, u = sgpr.kernel, sgpr.inducing_variable
    fitc = gpflow.models.GPRFITC((X, Y), kernel, u, noise_variance=NOISE)
    features, dense = Kuf(u, kernel, X).numpy(), Kuu(u, kernel).numpy()
    explained = features.T @ np.linalg.solve(dense, features)
    missing = kernel(X, full_cov=False).numpy() - np.diag(explained)
    noise = NOISE * np.eye(len(X))
    elbo = sgpr.elbo()
    bound = gaussian_log_density(Y, explained + noise) - np.sum(missing) / NOISE
    assert_close(elbo, bound)
    likelihood = gaussian_log_density(Y, explained + noise + np.diag(missing))
    assert_close(fitc.fitc_log_marginal_likelihood(), likelihood)

    exact = gpflow.models.GPR((X, Y), kernel, noise_variance=NOISE)
    likelihood = exact.log_marginal_likelihood().numpy()
    rounding = 1e-10 * abs(likelihood)
    assert elbo.numpy() <= likelihood + rounding
    assert sgpr.upper_bound().numpy() >= likelihood - rounding

    mean, covariance = sgpr.compute_qu()
    assert_close((mean, covariance), twin.compute_qu())
    root = np.linalg.cholesky(covariance)
    svgp = gpflow.models.SVGP(
        kernel,
        sgpr.likelihood,
        u,
        num_latent_gps=2,
        whiten=False,
        q_mu=mean,
        q_sqrt=np.stack([root, root]),
    )
    assert_close(svgp.elbo((X, Y)), elbo)
    Xnew = make_inputs(case, 6)
    assert_close(svgp.predict_f(Xnew), sgpr.predict_f(Xnew))


@pytest.mark.parametrize(
    ("case", "name"),
    [
        param(case, name, id=f"{name}-{case.name}", quick=case in FIRST_AND_LAST_KIND)
        for k, case in enumerate(REPRESENTATIVES)
        for i, name in enumerate(("SGPR", "GPRFITC", "CGLB"))
        if case in FIRST_AND_LAST_KIND or i == k % 3
    ],
)
def test_objective_and_predictions(case: Case, name: str) -> None:
    """These models see no more of a case than Kuu and Kuf, which are dense tensors."""
    model, twin = make_pair(case, getattr(gpflow.models, name))
    assert_same_objective(model.training_loss, twin.training_loss, model.trainable_variables)
    X = make_inputs(case, 6)
    posterior = model.posterior() if name == "SGPR" else None
    for full_cov in (False, True):
        options = {"full_cov": full_cov}
        if name == "CGLB" and full_cov:
            continue  # GPflow's CGLB has marginal predictions only
        prediction = model.predict_f(X, **options)
        assert_close(prediction, twin.predict_f(X, **options))
        if posterior is not None:
            assert_close(posterior.predict_f(X, **options), prediction)
            assert_close(posterior.fused_predict_f(X, **options), prediction)
    if name == "SGPR":  # the others inherit it
        assert_close(model.upper_bound(), twin.upper_bound())
    # The same methods in SGPR and GPRFITC, of CGLB's own in CGLB.
    if name != "GPRFITC":
        assert_close(model.predict_y(X), twin.predict_y(X))
    if name != "SGPR":
        assert_close(model.predict_log_density(model.data), twin.predict_log_density(model.data))


@pytest.mark.parametrize(
    ("case", "whiten"),
    [
        param(
            case,
            whiten,
            id=f"{case.name}-{name}",
            quick=quick,
        )
        for case, (name, whiten), quick in in_turn(
            REPRESENTATIVES, (("whitened", True), ("unwhitened", False)), ONE_OF_EACH_KIND, first=1
        )
    ],
)
def test_natural_gradient_reaches_sgpr(case: Case, whiten: bool) -> None:
    """One step of length one finds the optimal q(u) of a Gaussian likelihood."""
    model = make_svgp(case, whiten=whiten, num_latent_gps=2)
    model.num_data = None
    data = make_data(case, 2)
    gpflow.optimizers.NaturalGradient(gamma=1.0).minimize(
        model.training_loss_closure(data, compile=False), [(model.q_mu, model.q_sqrt)]
    )
    sgpr = gpflow.models.SGPR(
        data, model.kernel, model.inducing_variable, mean_function=model.mean_function
    )
    sgpr.likelihood = model.likelihood
    assert_close(model.elbo(data), sgpr.elbo())
    X = make_inputs(case, 6)
    assert_close(model.predict_f(X), sgpr.predict_f(X), rtol=1e-7)


@each_class_quick_each_kind
def test_sgpmc(case: Case) -> None:
    kernel, inducing_variable = case.build()
    data = make_data(case)
    likelihood = gpflow.likelihoods.Gaussian(0.2)
    model = gpflow.models.SGPMC(data, kernel, likelihood, inducing_variable=inducing_variable)
    twin = gpflow.models.SGPMC(
        data, kernel, likelihood, inducing_variable=DenseTwin(inducing_variable)
    )
    model.V.assign(0.3 * np.sin(np.arange(model.V.shape[0]))[:, None])
    twin.V = model.V
    assert_same_objective(
        model.log_posterior_density, twin.log_posterior_density, model.trainable_variables
    )
    X = make_inputs(case, 6)
    assert_close(model.predict_f(X), twin.predict_f(X), atol=1e-13)


@cases(ONE_OF_EACH_KIND, quick=ONE_OF_EACH_KIND[:1])
def test_hmc_on_sgpmc(case: Case) -> None:
    """The density and its gradients, all that HMC sees, are compared for each class above."""
    kernel, inducing_variable = case.build()
    model = gpflow.models.SGPMC(
        make_data(case),
        kernel,
        gpflow.likelihoods.StudentT(),
        inducing_variable=inducing_variable,
    )
    for part in (kernel, inducing_variable, model.likelihood):
        gpflow.set_trainable(part, False)
    helper = gpflow.optimizers.SamplingHelper(model.log_posterior_density, [model.V])
    hmc = tfp.mcmc.HamiltonianMonteCarlo(
        helper.target_log_prob_fn, num_leapfrog_steps=3, step_size=0.05
    )
    state, results = hmc.one_step(
        helper.current_state, hmc.bootstrap_results(helper.current_state), seed=(1, 2)
    )
    assert bool(results.is_accepted)
    assert np.all(np.isfinite(state[0])) and np.max(np.abs(state[0])) > 1e-3
    model.V.assign(state[0])
    density = results.accepted_results.target_log_prob
    assert_close(density, model.log_posterior_density())
    assert tf.reduce_all(tf.math.is_finite(density))
