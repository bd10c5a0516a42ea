"""`posterior()`: its three kinds of cache, batches of inputs, known values.

That predictions are those of the dense twin, with and without a cache, is in test_svgp.py.
"""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.posteriors import PrecomputeCacheType

from .cases import ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .dense_twin import DenseTwin, dense_twin
from .helpers import assert_close, make_inputs, make_q, make_svgp
from .selection import each_class, in_turn, param

FORMS = {
    "whitened-diagonal": (True, True),
    "whitened-full": (True, False),
    "unwhitened-diagonal": (False, True),
    "unwhitened-full": (False, False),
}


@each_class
def test_without_a_cache(case: Case) -> None:
    posterior = make_svgp(case).posterior(PrecomputeCacheType.NOCACHE)
    assert posterior.cache is None
    with pytest.raises(ValueError, match="Cache has not been precomputed"):
        posterior.predict_f(make_inputs(case, 2))


@pytest.mark.parametrize(
    ("case", "form"),
    [
        param(case, form, id=f"{case.name}-{form}", quick=case in ONE_OF_EACH_KIND)
        for case, form in zip(REPRESENTATIVES, itertools.cycle(FORMS), strict=False)
    ],
)
def test_variable_cache_follows_the_parameters(case: Case, form: str) -> None:
    """A compiled function of a VARIABLE cache sees update_cache; a TENSOR cache stays. One form of
    q for each case: what the cache holds is in test_svgp.py."""
    whiten, q_diag = FORMS[form]
    model = make_svgp(case, whiten=whiten, q_diag=q_diag)
    posterior = model.posterior(PrecomputeCacheType.VARIABLE)
    fixed = model.posterior("tensor")
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


def split(prediction: tuple[tf.Tensor, tf.Tensor], *batch: int) -> tuple[np.ndarray, np.ndarray]:
    """What a joint prediction ``[N, P]``, ``[P, N, N]`` says of the N points in equal batches."""
    mean, cov = (part.numpy() for part in prediction)
    number, latent = int(np.prod(batch)), mean.shape[1]
    size = len(mean) // number
    between = cov.reshape(latent, number, size, number, size)
    within = np.stack([between[:, k, :, k] for k in range(number)])
    return mean.reshape(*batch, size, latent), within.reshape(*batch, latent, size, size)


@pytest.mark.parametrize(
    ("case", "form"),
    [
        param(case, form, id=f"{case.name}-{form}", quick=quick)
        for case, form, quick in in_turn(
            REPRESENTATIVES, ("whitened-diagonal", "unwhitened-full"), ONE_OF_EACH_KIND
        )
    ],
)
def test_batched_inputs(case: Case, form: str) -> None:
    """Leading dimensions of Xnew: as if each batch were predicted by itself. That Kuf has them is
    in test_registry.py for every case. How q is given does not matter to the family: it has one of
    the forms for each class, both for each kind."""
    whiten, q_diag = FORMS[form]
    model = make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=2)
    posterior = model.posterior()
    X = make_inputs(case, 2, 3, 4)
    mean, cov = split(dense_twin(model).predict_f(X.reshape(24, -1), full_cov=True), 2, 3)
    var = np.moveaxis(np.diagonal(cov, axis1=-2, axis2=-1), -1, -2)
    assert mean.shape == var.shape == (2, 3, 4, 2) and cov.shape == (2, 3, 2, 4, 4)
    rtol = case.kernel_rtol
    for full_cov, reference in ((False, (mean, var)), (True, (mean, cov))):
        assert_close(posterior.fused_predict_f(X, full_cov=full_cov), reference, rtol=rtol)
        assert_close(posterior.predict_f(X, full_cov=full_cov), reference, rtol=rtol)
        assert_close(model.predict_f(X, full_cov=full_cov), reference, rtol=rtol)


@pytest.mark.parametrize(
    ("case", "whiten"),
    [
        param(case, whiten, id=f"{case.name}-{name}", quick=quick)
        for case, (name, whiten), quick in in_turn(
            REPRESENTATIVES, (("whitened", True), ("unwhitened", False)), ONE_OF_EACH_KIND
        )
    ],
)
def test_conditional_on_known_values(case: Case, whiten: bool) -> None:
    """q_sqrt=None: u is known; also as a cached posterior, and for a batch of inputs."""
    kernel, inducing_variable = case.build()
    q_mu, _ = make_q(kernel, inducing_variable, whiten=whiten, num_latent_gps=2)
    twin = DenseTwin(inducing_variable)
    batch = make_inputs(case, 3, 4)
    X = batch.reshape(12, -1)
    posterior = gpflow.posteriors.create_posterior(
        kernel, inducing_variable, q_mu, None, whiten, None, "tensor"
    )
    atol = 1e-13  # where the features explain the whole kernel, the variance is rounding alone
    for full_cov in (False, True):
        options = {"full_cov": full_cov, "white": whiten}
        desired = gpflow.conditionals.conditional(X, twin, kernel, q_mu, **options)
        actual = gpflow.conditionals.conditional(X, inducing_variable, kernel, q_mu, **options)
        assert_close(actual, desired, atol=atol)
        assert_close(posterior.predict_f(X, full_cov=full_cov), desired, atol=atol)
        batches = gpflow.conditionals.conditional(batch, inducing_variable, kernel, q_mu, **options)
        if full_cov:
            desired = split(desired, 3)
        else:
            desired = tuple(tf.reshape(part, [3, 4, 2]) for part in desired)
        assert_close(batches, desired, rtol=case.kernel_rtol, atol=atol)
