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
from tests.conformance.helpers import assert_close, value_and_gradients
from tests.conformance.selection import param

from .bounds import assert_same_bound
from .cases import BY_NAME, CASES, Case, joint_svgp, make_additive, make_data, points

COVARIANCES = [(False, False), (True, False), (True, True), (False, True)]
# Every option with every case, and every pair of options with several.
OPTIONS = [(True, True, 3), (True, False, 1), (False, True, 1), (False, False, 3)]
NAMES = ["white-diagonal-P3", "white-full-P1", "unwhitened-diagonal-P1", "unwhitened-full-P3"]
# One of each kind: all blocks equal, blocks of several sizes, and diagonal beside dense ones.
SOME_CASES = pytest.mark.parametrize(
    "case",
    [param(BY_NAME[n], id=n, quick=n == "mixed") for n in ("distinct", "complete", "mixed")],
)


def assert_same_elbo(model: AdditiveSVGP, case: Case, data: tuple) -> None:
    joint = joint_svgp(model, case.sizes)
    assert_same_bound(model, joint, [*model.q_mu, *model.q_sqrt], data)


@pytest.mark.parametrize(
    ("case", "whiten", "q_diag", "latent"),
    [
        # Whitened and not, with a diagonal and a full q: two of the four in the quick tier.
        param(case, *options, id=f"{case.name}-{name}", quick=j in ((0, 3), (1, 2))[k % 2])
        for k, case in enumerate(CASES)
        for j, (name, options) in enumerate(zip(NAMES, OPTIONS, strict=True))
    ],
)
def test_elbo_and_gradients(case: Case, whiten: bool, q_diag: bool, latent: int) -> None:
    model = make_additive(case, whiten=whiten, q_diag=q_diag, num_latent_gps=latent)
    assert model.num_blocks == len(case.sizes)
    assert_same_elbo(model, case, make_data(latent))
    assert_close(model.prior_kl(), joint_svgp(model, case.sizes).prior_kl())


@pytest.mark.parametrize(
    ("case", "whiten", "q_diag", "latent"),
    [
        param(
            case, *OPTIONS[(k + shift) % 4], id=f"{case.name}-{(k + shift) % 4}", quick=shift == 0
        )
        for k, case in enumerate(CASES)
        for shift in (0, 1)
    ],
)
def test_predictions(case: Case, whiten: bool, q_diag: bool, latent: int) -> None:
    """Fused, and from each kind of cache, in turns."""
    model = make_additive(case, whiten=whiten, q_diag=q_diag, num_latent_gps=latent)
    joint = joint_svgp(model, case.sizes)
    X = points(6, seed=3)
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


@pytest.mark.parametrize(
    ("name", "whiten", "q_diag", "latent"),
    [
        param("distinct", True, True, 1, id="distinct", quick=False),
        param("complete", False, False, 3, id="complete", quick=False),
        param("mixed", True, False, 3, id="mixed"),
        param("diagonal", False, True, 3, id="diagonal", quick=False),
    ],
)
def test_batched_inputs(name: str, whiten: bool, q_diag: bool, latent: int) -> None:
    """Leading dimensions of Xnew: each batch by itself, as if alone."""
    case = BY_NAME[name]
    model = make_additive(case, whiten=whiten, q_diag=q_diag, num_latent_gps=latent)
    joint = joint_svgp(model, case.sizes)
    X = points(2, 2, 4, seed=4)
    posterior = model.posterior()
    # GPflow does not expand a joint covariance of several outputs for batches.
    for full_cov, full_output_cov in [(False, False), (True, False), (False, True)]:
        options = {"full_cov": full_cov, "full_output_cov": full_output_cov}
        alone = [[joint.predict_f(x, **options) for x in row] for row in X]
        expected = [np.array([[pair[k] for pair in row] for row in alone]) for k in range(2)]
        for predict in (model.predict_f, posterior.predict_f):
            mean, cov = predict(X, **options)
            assert mean.shape == expected[0].shape and cov.shape == expected[1].shape
            assert_close((mean, cov), expected)


@pytest.mark.parametrize("name", ["fourier", "interval-equal"])
def test_blocks_on_devices(name: str) -> None:
    """One by one they are what they are in batches, ranks of their own included."""
    model = make_additive(BY_NAME[name], whiten=False)
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
    assert_close(placed.elbo(make_data()), model.elbo(make_data()), rtol=1e-12)
    assert_close(placed.predict_f(points(4)), model.predict_f(points(4)), rtol=1e-11)


@SOME_CASES
@pytest.mark.parametrize("latent", [param(1, id="1", quick=False), 3])
def test_likelihood_predictions(case: Case, latent: int) -> None:
    model = make_additive(case, num_latent_gps=latent)
    joint = joint_svgp(model, case.sizes)
    X, Y = make_data(latent)
    assert_close(model.predict_y(X), joint.predict_y(X))
    assert_close(model.predict_log_density((X, Y)), joint.predict_log_density((X, Y)), rtol=1e-8)


@SOME_CASES
@pytest.mark.parametrize("full_cov", [False, True], ids=["marginal", "joint"])
def test_samples(case: Case, full_cov: bool) -> None:
    """Their mean and variance are those of predict_f."""
    model = make_additive(case, num_latent_gps=2)
    X = points(5, seed=3)
    tf.random.set_seed(0)
    samples = model.predict_f_samples(X, num_samples=4000, full_cov=full_cov).numpy()
    assert samples.shape == (4000, 5, 2)
    mean, variance = (part.numpy() for part in model.predict_f(X))
    deviations = (samples.mean(axis=0) - mean) / np.sqrt(variance / 4000)
    assert np.max(np.abs(deviations)) < 5
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=0.15)
    assert model.predict_f_samples(X, full_cov=full_cov).shape == (5, 2)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        param(name, kind, id=f"{name}-{kind}", quick=name == in_quick_tier)
        for kind, in_quick_tier in (("bernoulli", "distinct"), ("multiclass", "stock"))
        for name in ("distinct", "stock", "nested")
    ],
)
def test_classification(name: str, kind: str) -> None:
    latent = 1 if kind == "bernoulli" else 3
    rng = np.random.default_rng(0)
    X = make_data()[0]
    labels = rng.integers(0, latent + (latent == 1), size=(len(X), 1))
    if kind == "bernoulli":
        likelihood, Y = gpflow.likelihoods.Bernoulli(), labels.astype(float)
    else:
        likelihood, Y = gpflow.likelihoods.MultiClass(3), labels
    case = BY_NAME[name]
    model = make_additive(case, num_latent_gps=latent, likelihood=likelihood)
    assert_same_elbo(model, case, (X, Y))
    joint = joint_svgp(model, case.sizes)
    assert_close(model.predict_y(X), joint.predict_y(X))
    assert_close(model.predict_log_density((X, Y)), joint.predict_log_density((X, Y)))


@pytest.mark.parametrize("num_data", [None, 50])
def test_minibatches(num_data: int | None) -> None:
    """The mean of the elbos of all batches is that of the whole, with ``num_data`` only."""
    model = make_additive(BY_NAME["stock"], num_data=num_data)
    X, Y = make_data(num_data=50)
    whole = model.elbo((X, Y)).numpy()
    parts = [model.elbo((X[k : k + 10], Y[k : k + 10])).numpy() for k in range(0, 50, 10)]
    if num_data is None:
        kl = model.prior_kl().numpy()
        assert sum(parts) + 4 * kl == pytest.approx(whole, rel=1e-10)
    else:
        assert np.mean(parts) == pytest.approx(whole, rel=1e-10)


@SOME_CASES
def test_float32(case: Case) -> None:
    expected = make_additive(case, num_latent_gps=2)
    data, X = make_data(2), points(200, seed=3)
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
@pytest.mark.parametrize("cached", [False, True], ids=["fused", "cached"])
def test_variances_are_not_negative(dtype: type, cached: bool) -> None:
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
        source = model.posterior() if cached else model
        variance = source.predict_f(X)[1].numpy()
    assert np.all(np.isfinite(variance)) and np.all(variance >= 0) and np.all(variance < 1e-2)
