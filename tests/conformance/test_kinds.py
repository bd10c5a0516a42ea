"""Tests of each kind of operator of Kuu: forms of q, several outputs, graphs.

One case stands for its kind: posterior and KL divergence see the operator, and nothing else of a
family. (An unwhitened full q is in test_classes.py, for each class.)
"""

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow.covariances import Kuf, Kuu
from gpflow.posteriors import PrecomputeCacheType

from interdomain.kernels import FiniteRank
from interdomain.linalg import projections

from .cases import FIRST_AND_LAST_KIND, ONE_OF_EACH_KIND, Case
from .dense_twin import DenseTwin, dense_twin
from .helpers import (
    assert_close,
    assert_same_objective,
    assert_same_results,
    make_data,
    make_inputs,
    make_q,
    make_svgp,
)

pytestmark = pytest.mark.usefixtures("no_jitter")
each_kind = pytest.mark.parametrize("case", ONE_OF_EACH_KIND, ids=lambda case: case.kind)
FORMS = [(True, True), (False, True), (True, False)]  # whiten, q_diag


@each_kind
def test_forms_of_q(case: Case) -> None:
    """The elbo and predictions with their gradients; marginal and joint predictions of two latent
    GPs: fused, from a cache, and by a conditional. The oracle's are all of one joint prediction."""
    parts = case.build()
    data, inputs = make_data(case, 2), tf.Variable(make_inputs(case, 5))

    def results(model: gpflow.models.SVGP) -> object:
        cached = model.posterior(PrecomputeCacheType.TENSOR)
        q = {"q_sqrt": tf.convert_to_tensor(model.q_sqrt), "white": model.whiten}
        f = tf.convert_to_tensor(model.q_mu)
        mean, var = gpflow.conditionals.conditional(inputs, *parts[::-1], f, **q)
        joint = [posterior.predict_f(inputs, full_cov=True) for posterior in (cached, model)]
        marginal = mean + model.mean_function(inputs), var, cached.predict_f(inputs)
        return [model.elbo(data), marginal, joint, model.predict_f(inputs, full_output_cov=True)]

    def reference(twin: gpflow.models.SVGP) -> list[tf.Tensor]:
        mean, cov = twin.predict_f(inputs, full_cov=True)
        var = tf.transpose(tf.linalg.diag_part(cov))
        return [twin.elbo(data), *[mean, var] * 2, *[mean, cov] * 2, mean, tf.linalg.diag(var)]

    for whiten, q_diag in FORMS:
        model = make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=2, parts=parts)
        twin = dense_twin(model)
        assert_same_results(
            lambda model=model: results(model),
            lambda twin=twin: reference(twin),
            (*model.trainable_variables, inputs),
        )


@each_kind
def test_large_roots_and_priors_of_finite_rank(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large roots are multiplied by panels, here of two columns or more. Features that explain all
    of the prior (not of a sum: its summands are wrapped one by one) leave no variance of it."""
    monkeypatch.setattr(projections, "_PANEL", 2)
    kernel, features = case.build()
    settings = [(kernel, False)]
    if "blocks" not in case.kind:
        settings += [(FiniteRank(kernel, features), q_diag) for q_diag in (False, True)]
    for prior, q_diag in settings:
        model = make_svgp(case, q_diag=q_diag, num_latent_gps=3, parts=(prior, features))
        twin, data = dense_twin(model), make_data(case, 3)
        assert_same_objective(
            lambda model=model, data=data: model.elbo(data),
            lambda twin=twin, data=data: twin.elbo(data),
            model.trainable_variables,
            message=f"{type(prior).__name__} {q_diag=}",
        )


@each_kind
def test_known_values_and_batches_of_inputs(case: Case) -> None:
    """q_sqrt=None: u is known. Leading dimensions of X are as if each batch were alone."""
    kernel, inducing_variable = case.build()
    batch = make_inputs(case, 3, 4)
    X = batch.reshape(12, -1)
    atol = 1e-13  # where the features explain the whole kernel, the variance is rounding alone
    for whiten in (True, False):
        q = make_q(kernel, inducing_variable, whiten=whiten, num_latent_gps=2)
        q_mu, q_sqrt = map(tf.constant, q)
        for root in (None, q_sqrt):
            mean, cov = gpflow.conditionals.conditional(
                X,
                DenseTwin(inducing_variable),
                kernel,
                q_mu,
                q_sqrt=root,
                white=whiten,
                full_cov=True,
            )
            within = np.stack([cov[:, k : k + 4, k : k + 4] for k in (0, 4, 8)])
            var = np.moveaxis(np.diagonal(within, axis1=-2, axis2=-1), -1, -2)
            mean = mean.numpy().reshape(3, 4, 2)
            posterior = gpflow.posteriors.create_posterior(
                kernel, inducing_variable, q_mu, root, whiten, None, "tensor"
            )
            for full_cov, spread in ((False, var), (True, within)):
                for predict in (posterior.predict_f, posterior.fused_predict_f):
                    actual = predict(batch, full_cov=full_cov)
                    rtol = max(1e-8, case.kernel_rtol)
                    assert_close(actual, (mean, spread), rtol=rtol, atol=atol)


@each_kind
def test_caches(case: Case) -> None:
    """A compiled function of a VARIABLE cache sees update_cache; a TENSOR cache stays."""
    model = make_svgp(case, whiten=False, q_diag=True)
    posterior = model.posterior(PrecomputeCacheType.VARIABLE)
    fixed = model.posterior(PrecomputeCacheType.TENSOR)
    assert all(isinstance(value, tf.Variable) for value in posterior.cache)
    compiled = tf.function(posterior.predict_f, autograph=False)
    X = make_inputs(case, 5)
    before = dense_twin(model).predict_f(X)
    assert_close(compiled(X), before)
    cache = posterior.cache
    model.q_mu.assign(model.q_mu + 1.0)
    model.q_sqrt.assign(0.5 * model.q_sqrt)
    model.mean_function.c.assign(0.0)
    posterior.update_cache()
    after = dense_twin(model).predict_f(X)
    assert posterior.cache is cache
    assert np.max(np.abs(after[0] - before[0])) > 0.1
    assert_close(compiled(X), after)
    assert_close(fixed.predict_f(X)[0], before[0] - 0.3)  # the mean function is not cached
    without = model.posterior(PrecomputeCacheType.NOCACHE)
    assert without.cache is None
    with pytest.raises(ValueError, match="Cache has not been precomputed"):
        without.predict_f(X)


# GPflow's other models, which see dense Kuu and Kuf alone: two cases stand for all.

NOISE = 0.2
two_cases = pytest.mark.parametrize("case", FIRST_AND_LAST_KIND, ids=lambda case: case.name)


def gaussian_log_density(Y: np.ndarray, covariance: np.ndarray) -> float:
    """The log density of independent columns."""
    zero = np.zeros(len(Y))
    return sum(
        tfp.distributions.MultivariateNormalFullCovariance(zero, covariance).log_prob(y).numpy()
        for y in Y.T
    )


@two_cases
@pytest.mark.filterwarnings("ignore:MultivariateNormalFullCovariance")
def test_bounds_by_brute_force(case: Case) -> None:
    """SGPR's and FITC's from N x N matrices; SGPR's is that of an SVGP, and below the evidence."""
    (kernel, u), (X, Y) = case.build(), make_data(case, 2)
    sgpr, twin = (
        gpflow.models.SGPR((X, Y), kernel, features, noise_variance=NOISE)
        for features in (u, DenseTwin(u))
    )
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
    q = {"q_mu": mean, "q_sqrt": np.stack([np.linalg.cholesky(covariance)] * 2), "whiten": False}
    svgp = gpflow.models.SVGP(kernel, sgpr.likelihood, u, num_latent_gps=2, **q)
    assert_close(svgp.elbo((X, Y)), elbo)
    Xnew = make_inputs(case, 6)
    assert_close(svgp.predict_f(Xnew), sgpr.predict_f(Xnew))
