"""AdditiveSVGP equals a stock SVGP whose joint q(u) is block-diagonal."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.inducing_variables import InducingPoints
from gpflow.posteriors import PrecomputeCacheType as Cache

from interdomain.inducing_variables import SumInducingVariables
from interdomain.models import AdditiveSVGP
from tests.conformance.helpers import assert_close, assert_same_objective, value_and_gradients

from .bounds import assert_same_bound
from .cases import BY_NAME, Case, joint_svgp, make_additive, make_data, points

COVARIANCES = [(False, False), (True, False), (True, True), (False, True)]
# Whitened or not, a diagonal q or a full one, and latent GPs: each case once, and each of the four
# forms with blocks of several kinds.
FORMS = [
    ("shared", True, True, 2),
    ("nested", True, True, 1),
    ("stock", True, False, 1),
    ("diagonal", True, False, 3),
    ("interval-unequal", True, False, 3),
    ("complete", False, True, 1),
    ("diagonal", False, True, 1),
    ("interval-equal", False, True, 1),
    ("distinct", False, False, 2),
    ("mixed", False, False, 2),
    ("mixture", False, False, 1),
]


def assert_same_elbo(model: AdditiveSVGP, case: Case, data: tuple) -> None:
    joint = joint_svgp(model, case.sizes)
    assert_same_bound(model, joint, [*model.q_mu, *model.q_sqrt], data)


@pytest.mark.parametrize(("name", "whiten", "q_diag", "latent"), FORMS)
def test_bound_gradients_and_predictions(
    name: str, whiten: bool, q_diag: bool, latent: int
) -> None:
    case = BY_NAME[name]
    model = make_additive(case, whiten=whiten, q_diag=q_diag, num_latent_gps=latent)
    assert model.num_blocks == len(case.sizes)
    assert_same_elbo(model, case, make_data(latent))
    joint, X = joint_svgp(model, case.sizes), points(4, seed=3)
    assert_close(model.prior_kl(), joint.prior_kl())
    posterior = model.posterior()
    for full_cov in (False, True):
        with disable_check_shapes():
            expected = joint.predict_f(X, full_cov=full_cov)
        assert_close(model.predict_f(X, full_cov=full_cov), expected)
        assert_close(posterior.predict_f(X, full_cov=full_cov), expected)


def test_kinds_of_covariances_and_caches() -> None:
    """Fused, and from each kind of cache, in turns."""
    case = BY_NAME["mixed"]
    model = make_additive(case, num_latent_gps=2)
    joint, X = joint_svgp(model, case.sizes), points(4, seed=3)
    cached = [model.posterior(kind) for kind in (Cache.TENSOR, Cache.VARIABLE)]
    uncached = model.posterior(Cache.NOCACHE)
    fused = [model.predict_f, uncached.fused_predict_f]
    for turn, (full_cov, full_output_cov) in enumerate(COVARIANCES):
        options = {"full_cov": full_cov, "full_output_cov": full_output_cov}
        with disable_check_shapes():
            expected = joint.predict_f(X, **options)
        assert_close(fused[turn % 2](X, **options), expected)
        assert_close(cached[turn % 2].predict_f(X, **options), expected)
    with pytest.raises(ValueError, match="Cache has not been precomputed"):
        uncached.predict_f(X)


def test_batched_inputs() -> None:
    """Leading dimensions of Xnew: each batch by itself, as if alone."""
    case = BY_NAME["mixed"]
    model = make_additive(case, num_latent_gps=3)
    X = points(2, 1, 4, seed=4)
    posterior = model.posterior()
    # GPflow does not expand a joint covariance of several outputs for batches.
    for full_cov, full_output_cov in [(False, False), (True, False), (False, True)]:
        options = {"full_cov": full_cov, "full_output_cov": full_output_cov}
        alone = [[model.predict_f(x, **options) for x in row] for row in X]
        expected = [np.array([[pair[k] for pair in row] for row in alone]) for k in range(2)]
        for predict in (model.predict_f, posterior.predict_f):
            mean, cov = predict(X, **options)
            assert mean.shape == expected[0].shape and cov.shape == expected[1].shape
            assert_close((mean, cov), expected)


def test_blocks_on_devices() -> None:
    """One by one they are what they are in batches, ranks of their own included."""
    model = make_additive(BY_NAME["interval-equal"], whiten=False)
    placed = AdditiveSVGP(
        model.kernel,
        model.likelihood,
        model.inducing_variable,
        mean_function=model.mean_function,
        q_mu=[mean.numpy() for mean in model.q_mu],
        q_sqrt=[root.numpy() for root in model.q_sqrt],
        whiten=False,
        num_data=model.num_data,
        devices=["CPU:0"],
    )
    assert_same_objective(
        lambda: placed.elbo(make_data()),
        lambda: model.elbo(make_data()),
        model.kernel.trainable_variables,
    )
    assert_close(placed.prior_kl(), model.prior_kl(), rtol=1e-12)
    for full_cov in (False, True):
        expected = model.predict_f(points(4), full_cov=full_cov)
        assert_close(placed.predict_f(points(4), full_cov=full_cov), expected, rtol=1e-11)


def test_another_likelihood() -> None:
    case = BY_NAME["stock"]
    X, labels = make_data()[0], np.random.default_rng(0).integers(0, 3, size=(11, 1))
    likelihood = gpflow.likelihoods.MultiClass(3)
    model = make_additive(case, num_latent_gps=3, likelihood=likelihood)
    assert_same_elbo(model, case, (X, labels))
    joint = joint_svgp(model, case.sizes)
    assert_close(model.predict_y(X), joint.predict_y(X))
    assert_close(model.predict_log_density((X, labels)), joint.predict_log_density((X, labels)))


@pytest.mark.parametrize("num_data", [None, 50])
def test_minibatches(num_data: int | None) -> None:
    """The mean of the elbos of all batches is that of the whole, with ``num_data`` only."""
    model = make_additive(BY_NAME["stock"], num_data=num_data)
    X, Y = make_data(num_data=50)
    whole = model.elbo((X, Y)).numpy()
    parts = [model.elbo((X[k : k + 25], Y[k : k + 25])).numpy() for k in (0, 25)]
    if num_data is None:
        kl = model.prior_kl().numpy()
        assert sum(parts) + kl == pytest.approx(whole, rel=1e-10)
    else:
        assert np.mean(parts) == pytest.approx(whole, rel=1e-10)


def test_float32() -> None:
    case = BY_NAME["mixed"]
    expected = make_additive(case, num_latent_gps=2)
    data, X = make_data(2), points(20, seed=3)
    reference = expected.elbo(data), *expected.predict_f(X)
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32, jitter=1e-5)):
        model = make_additive(case, num_latent_gps=2)
        assert {p.dtype for p in model.parameters} == {tf.float32}
        data32, X32 = make_data(2), X.astype(np.float32)
        value, gradients = value_and_gradients(
            lambda: model.elbo(data32), model.trainable_variables
        )
        predictions = model.predict_f(X32), model.posterior().predict_f(X32)
        joint = model.predict_f(X32[:5], full_cov=True)
    assert all(np.all(np.isfinite(g)) and g.dtype == tf.float32 for g in gradients)
    assert np.all(np.isfinite(joint[1]))
    assert_close(value, reference[0], rtol=1e-2)
    for mean, variance in predictions:
        assert np.all(variance.numpy() >= 0)
        assert_close((mean, variance), reference[1:], rtol=1e-2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_variances_are_not_negative(dtype: type) -> None:
    """u all but known at as many points as there are data: rounding decides the sign."""
    with gpflow.config.as_context(gpflow.config.Config(float=dtype, jitter=1e-6)):
        X = np.linspace(-1, 1, 30, dtype=dtype)[:, None] * np.ones(3, dtype)
        kernel = gpflow.kernels.SquaredExponential() + gpflow.kernels.Matern12(variance=1e-8)
        model = AdditiveSVGP(
            kernel,
            gpflow.likelihoods.Gaussian(),
            SumInducingVariables([InducingPoints(X), InducingPoints(X)]),
            q_sqrt=[1e-8 * np.eye(30)[None]] * 2,
        )
        variances = [source.predict_f(X)[1].numpy() for source in (model, model.posterior())]
    for variance in variances:
        assert np.all(np.isfinite(variance)) and np.all(variance >= 0) and np.all(variance < 1e-2)
