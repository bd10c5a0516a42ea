"""`posterior()`: its three kinds of cache, batches of inputs, compilation."""

from __future__ import annotations

import itertools

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.posteriors import PrecomputeCacheType

from .cases import CASES, Case
from .dense_twin import DenseTwin, dense_twin
from .helpers import assert_close, make_inputs, make_q, make_svgp

FORMS = {
    "whitened-diagonal": (True, True),
    "whitened-full": (True, False),
    "unwhitened-diagonal": (False, True),
    "unwhitened-full": (False, False),
}
Q = pytest.mark.parametrize(("whiten", "q_diag"), FORMS.values(), ids=list(FORMS))
# Where how q is given and what is done with it do not depend on each other: each form once.
TWO = pytest.mark.parametrize(
    ("whiten", "q_diag"),
    [(True, True), (False, False)],
    ids=["whitened-diagonal", "unwhitened-full"],
)


def covariances(whiten: bool, q_diag: bool, other: bool = False) -> list[dict[str, bool]]:
    """Two of the four kinds of covariance for each form of q, or the other two: any three of the
    four options occur in every combination."""
    return [
        {"full_cov": full_cov, "full_output_cov": full_cov ^ whiten ^ q_diag ^ other}
        for full_cov in (False, True)
    ]


@Q
def test_cached_and_fused_predictions(case: Case, whiten: bool, q_diag: bool) -> None:
    model = make_svgp(case, whiten=whiten, q_diag=q_diag, num_latent_gps=2)
    tensor = model.posterior(PrecomputeCacheType.TENSOR)
    nocache = model.posterior(PrecomputeCacheType.NOCACHE)
    twin = dense_twin(model)
    X = make_inputs(case, 5)
    for options in covariances(whiten, q_diag):
        with disable_check_shapes():
            reference = twin.predict_f(X, **options)
        assert_close(tensor.predict_f(X, **options), reference, message=f"cached {options}")
        assert_close(nocache.fused_predict_f(X, **options), reference, message=f"fused {options}")
    assert nocache.cache is None
    with pytest.raises(ValueError, match="Cache has not been precomputed"):
        nocache.predict_f(X)


@pytest.mark.parametrize(
    ("case", "whiten", "q_diag"),
    [
        pytest.param(case, *q, id=f"{case.name}-{name}")
        for case, (name, q) in zip(CASES, itertools.cycle(FORMS.items()), strict=False)
    ],
)
def test_variable_cache_follows_the_parameters(case: Case, whiten: bool, q_diag: bool) -> None:
    """A compiled function of a VARIABLE cache sees update_cache; a TENSOR cache stays. One form of
    q for each case: what the cache holds is in test_cached_and_fused_predictions."""
    model = make_svgp(case, whiten=whiten, q_diag=q_diag)
    posterior = model.posterior(PrecomputeCacheType.VARIABLE)
    fixed = model.posterior("tensor")
    assert all(isinstance(value, tf.Variable) for value in posterior.cache)
    compiled = tf.function(posterior.predict_f)
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


@TWO
def test_tensor_cache_is_differentiable(case: Case, whiten: bool, q_diag: bool) -> None:
    """Those of fused predictions in test_svgp.py take the other two forms of q."""
    model = make_svgp(case, whiten=whiten, q_diag=q_diag)
    twin = dense_twin(model)
    X = tf.Variable(make_inputs(case, 4))
    variables = (X, *(p.unconstrained_variable for p in (model.q_mu, model.q_sqrt)))

    def gradients(m: gpflow.models.SVGP) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            mean, var = m.posterior(PrecomputeCacheType.TENSOR).predict_f(X)
            target = tf.reduce_sum(tf.sin(mean)) + tf.reduce_sum(tf.sin(var))
        return tape.gradient(target, variables)

    assert_close(gradients(model), gradients(twin))


def split(prediction: tuple[tf.Tensor, tf.Tensor], *batch: int) -> tuple[np.ndarray, np.ndarray]:
    """What a joint prediction ``[N, P]``, ``[P, N, N]`` says of the N points in equal batches."""
    mean, cov = (part.numpy() for part in prediction)
    number, latent = int(np.prod(batch)), mean.shape[1]
    size = len(mean) // number
    between = cov.reshape(latent, number, size, number, size)
    within = np.stack([between[:, k, :, k] for k in range(number)])
    return mean.reshape(*batch, size, latent), within.reshape(*batch, latent, size, size)


@TWO
def test_batched_inputs(case: Case, whiten: bool, q_diag: bool) -> None:
    """Leading dimensions of Xnew: as if each batch were predicted by itself."""
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


@Q
def test_conditional(case: Case, whiten: bool, q_diag: bool) -> None:
    kernel, inducing_variable = case.build()
    q_mu, q_sqrt = make_q(kernel, inducing_variable, whiten=whiten, q_diag=q_diag, num_latent_gps=2)
    X = make_inputs(case, 5)
    q_mu, q_sqrt = tf.constant(q_mu), tf.constant(q_sqrt)
    twin = DenseTwin(inducing_variable, whiten=whiten)
    for kinds in covariances(whiten, q_diag, other=True):
        options = {**kinds, "white": whiten, "q_sqrt": q_sqrt}
        actual = gpflow.conditionals.conditional(X, inducing_variable, kernel, q_mu, **options)
        desired = gpflow.conditionals.conditional(X, twin, kernel, q_mu, **options)
        assert_close(actual, desired, message=str(options))


@TWO
def test_posterior_from_arrays(case: Case, whiten: bool, q_diag: bool) -> None:
    kernel, inducing_variable = case.build()
    q_mu, q_sqrt = make_q(kernel, inducing_variable, whiten=whiten, q_diag=q_diag)
    X = make_inputs(case, 5)
    predictions = [
        gpflow.posteriors.create_posterior(kernel, u, q_mu, q_sqrt, whiten).predict_f(X)
        for u in (inducing_variable, DenseTwin(inducing_variable, whiten=whiten))
    ]
    assert_close(*predictions)


@pytest.mark.parametrize("whiten", [True, False], ids=["whitened", "unwhitened"])
def test_conditional_on_known_values(case: Case, whiten: bool) -> None:
    """q_sqrt=None: u is known; also as a cached posterior, and for a batch of inputs."""
    kernel, inducing_variable = case.build()
    q_mu, _ = make_q(kernel, inducing_variable, whiten=whiten, num_latent_gps=2)
    twin = DenseTwin(inducing_variable, whiten=whiten)
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
