"""Sums of which the intercepts of one column of groups are a diagonal: against dense sums."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.inducing_variables import SumInducingVariables
from interdomain.models import DualSVGP, StructuredSGPR
from interdomain.models.dual_svgp.sites import Prior, Sites
from interdomain.regression import SufficientStatistics
from interdomain.sums import groups
from interdomain.sums.dense import DenseSums
from interdomain.sums.group_sums import GroupSums
from interdomain.tables import GroupFeatures, GroupIntercepts
from tests.conformance.helpers import assert_refused
from tests.tables.test_groups import NEW, SHOPS, blocks, intercepts, rows

NOISE, RNG = 0.07, np.random.default_rng(7)
X, Y = rows()
WEIGHTS = RNG.uniform(0.3, 3, size=len(X))


def with_points() -> tuple[Any, Any]:
    """Points whose kernel does not end with them, and groups without a finite rank, beside
    :func:`blocks`."""
    (first, *others), blocks_of_others = blocks(3)[0].kernels, blocks(3)[1].inducing_variables[1:]
    local = gpflow.kernels.Matern32(lengthscales=[0.4, 0.7], active_dims=[0, 3])
    points = gpflow.inducing_variables.InducingPoints(X[:6])
    shops = first.kernel, first.inducing_variable
    kernels = [*others, local, shops[0]]
    return gpflow.kernels.Sum(kernels), SumInducingVariables([*blocks_of_others, points, shops[1]])


def both(monkeypatch: pytest.MonkeyPatch, results: Callable[[type], dict[str, Any]]) -> None:
    """Compare results with sparse sums and with dense ones."""
    monkeypatch.setattr(groups, "FEWEST", 1)
    found = results(GroupSums)
    monkeypatch.setattr(groups, "FEWEST", 10**9)
    expected = results(DenseSums)
    assert set(found) == set(expected)
    for name, values in found.items():
        for mine, theirs in zip(
            tf.nest.flatten(values), tf.nest.flatten(expected[name]), strict=True
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.parametrize(
    "make,weights",
    [(lambda: blocks(1), WEIGHTS), (lambda: blocks(3), None), (with_points, WEIGHTS)],
)
def test_regression(
    make: Any, weights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two outputs: the bound with its gradients, predictions, statistics, weights and q."""

    def results(kind: type) -> dict[str, Any]:
        kernel, features = make()
        mean = gpflow.functions.Linear(np.full([4, 2], 0.1), np.full(2, 0.2))
        model = StructuredSGPR(
            (X, Y),
            kernel,
            features,
            noise_variance=NOISE,
            noise_weights=weights,
            mean_function=mean,
            batch_size=17,
        )
        assert type(model._features.sums) is kind
        found = {}
        for name in ("trained", "frozen"):
            variables = model.trainable_variables
            is_graph = name == "trained"  # where small matrices have a way of their own
            elbo = tf.function(model.elbo, autograph=False) if is_graph else model.elbo
            with tf.GradientTape() as tape:
                value = elbo()
            found[name] = value, [*map(tf.convert_to_tensor, tape.gradient(value, variables))]
            gpflow.set_trainable(list(model.feature_parameters.values()), False)
        with tf.GradientTape() as tape:
            predicted = model.predict_f(NEW)
        gradients = tape.gradient(predicted, model.trainable_variables)
        found["gradients of predictions"] = [*map(tf.convert_to_tensor, gradients)]
        sets, posterior = np.stack([NEW, X[:4]]), model.posterior()
        for full_cov in (False, True):
            found[f"sets {full_cov}"] = posterior.predict_f(sets, full_cov=full_cov)
            found[f"rows {full_cov}"] = model.predict_f(NEW, full_cov=full_cov)
        found["outputs"] = posterior.predict_f(NEW, full_output_cov=True)
        same = pickle.loads(pickle.dumps(model)).predict_f(NEW)
        np.testing.assert_array_equal(same[1], model.predict_f(NEW)[1])
        few, more = (
            model.accumulate((X[k], Y[k]), noise_weights=None if weights is None else weights[k])
            for k in (slice(0, 25), slice(25, None))
        )
        few.save(tmp_path / "few.npz")
        total = SufficientStatistics.load(tmp_path / "few.npz") + more
        rest = model.statistics - few
        for name, statistics, other in (("+", total, model.statistics), ("-", rest, more)):
            for key, array in statistics.sums.items():
                np.testing.assert_allclose(array, other.sums[key], atol=1e-9, err_msg=name + key)
        mean_of_weights, root = model.weights()
        found["weights"] = mean_of_weights, root @ tf.transpose(root)
        found["q"] = [model.compute_qu(), model.to_svgp().predict_f(NEW), model.whitened_mean()]
        found["sums"] = [model.explained(X), model.residual_sums(), model.q().kl()]
        return found

    both(monkeypatch, results)


F = 2 * np.sin(3 * X[:, :1]) * X[:, 3:]
COUNTS = RNG.poisson(np.exp(np.hstack([F, -F]))).astype(float)
CASES = {
    "two latent GPs": (gpflow.likelihoods.Poisson(), COUNTS),
    "bernoulli": (gpflow.likelihoods.Bernoulli(), (F > 0).astype(float)),
    "student": (gpflow.likelihoods.StudentT(scale=0.2), F + 0.3 * RNG.standard_t(2, size=F.shape)),
}


@pytest.mark.parametrize("name", CASES)
def test_passes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any likelihood: bounds of two passes, sites, and the gradients between passes."""
    likelihood, targets = CASES[name]
    latents = targets.shape[1]

    def results(kind: type) -> dict[str, Any]:
        kernel, features = with_points() if name == "bernoulli" else blocks(3)
        mean = gpflow.functions.Linear(np.full([4, latents], 0.1), np.full(latents, 0.2))
        model = DualSVGP((X, targets), kernel, likelihood, features, mean_function=mean)
        gpflow.set_trainable(list(model.feature_parameters.values()), False)
        assert type(model._features.sums) is kind
        first = model.pass_over_data()
        model.assign_sites(first.clipped)
        second = model.pass_over_data()
        variables = model.kernel.trainable_variables + mean.trainable_variables
        with tf.GradientTape() as tape:
            value = model.maximum_log_likelihood_objective()
        bound = model.to_svgp().elbo((X, targets))
        np.testing.assert_allclose(second.elbo, bound, rtol=1e-8)
        found = {"bounds": [first.elbo, second.elbo, value]}
        found["gradients"] = tape.gradient(value, variables)
        found["predictions"] = [model.predict_f(NEW), model.predict_f(NEW, full_cov=True)]
        found["slopes"] = second.slopes, second.curvatures
        found["sites"] = second.sites.shifts, second.sites.variances
        found["mean"] = model.slopes_of_mean(mean.trainable_variables)
        model.shrink_q(0.1)
        found["narrow"] = model.predict_f(NEW)
        return found

    both(monkeypatch, results)


def test_sites_of_trained_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """The normaliser of given sites, with its gradient by the points, too."""
    precisions, shifts = RNG.uniform(0.1, 2, size=[2, len(X)]), RNG.normal(size=[2, len(X)])

    def results(_: type) -> dict[str, Any]:
        kernel, features = with_points()
        model = DualSVGP((X, COUNTS), kernel, CASES["two latent GPs"][0], features)
        with tf.GradientTape() as tape:
            terms = model._features.terms_of(tf.constant(X))
            parts = model._features.sums.site_sums(tf.constant(X), precisions, shifts)
            sites = Sites(*parts, tf.matmul(terms, precisions, transpose_b=True))
            value = Prior(model._features).log_normaliser(sites, gram_gradient=True)
        gradients = tape.gradient(value, model.trainable_variables)
        assert len(gradients) > len(kernel.trainable_variables)
        return {"value": value, "gradients": [*map(tf.convert_to_tensor, gradients)]}

    both(monkeypatch, results)


def test_draws_have_the_covariance_of_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "FEWEST", 1)
    kernel, features = blocks(3)
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=NOISE)

    class Units:
        def standard_normal(self, shape: list[int]) -> np.ndarray:
            return np.eye(*shape)

    size = features.num_inducing
    drawn = model.posterior().draw_weights(Units(), size)
    mean, root = model.weights()
    for output in range(2):
        parts = drawn[:, :, output] - mean[:, output].numpy()
        np.testing.assert_allclose(parts.T @ parts, root @ tf.transpose(root), atol=1e-12)
    functions = idm.sample_functions(model, 3)
    weights = model.posterior().draw_weights(np.random.default_rng(0), 3)
    phi = gpflow.covariances.Kuf(features, kernel, NEW)
    expected = np.einsum("mn,smp->snp", phi, weights)
    np.testing.assert_allclose(functions(NEW), expected, atol=1e-12)


def test_many_levels_take_no_dense_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that does not hold ``[L, L]``; what would need it is refused."""
    monkeypatch.setattr("interdomain._arguments.MAX_GIB", 0.7)
    count = 10_000
    pairs = intercepts(np.arange(count), 1, 0.6), intercepts(SHOPS, 2, 0.3)
    kernel, features = zip(*pairs, strict=True)
    parts = gpflow.kernels.Sum(kernel), SumInducingVariables(features)
    levels = RNG.integers(count, size=500)
    many = np.column_stack([np.zeros(500), levels, RNG.choice(SHOPS, 500)])
    targets = RNG.normal(size=count)[levels, None]
    model = StructuredSGPR((many, targets), *parts, noise_variance=0.1)
    others = len(SHOPS) + 1
    assert model.statistics.sums["gram"].shape == ((count + 1) * (1 + others) + others**2,)
    exact = gpflow.models.GPR((many, targets), parts[0], noise_variance=0.1)
    np.testing.assert_allclose(model.elbo(), exact.log_marginal_likelihood(), rtol=1e-8)
    for mine, theirs in zip(model.predict_f(many[:5]), exact.predict_f(many[:5]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-8)
    message = "a dense q of 10,008 features is asked for, which has at most 4,096; use predict_f"
    dual = DualSVGP((many, targets), parts[0], gpflow.likelihoods.Gaussian(0.1), parts[1])
    for function in (model.to_svgp, model.compute_qu, model.weights, dual.to_svgp):
        with pytest.raises(ValueError, match=message):
            function()


def test_wrong_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws of a prior that goes on, and sites that make no Gaussian."""
    monkeypatch.setattr(groups, "FEWEST", 1)
    kernel, features = with_points()
    model = StructuredSGPR((X, Y), kernel, features, noise_variance=NOISE)
    message = "no function is drawn of a prior that does not end with its features"
    assert_refused([(lambda: idm.sample_functions(model, 1), message)])
    likelihood = gpflow.likelihoods.Gaussian(NOISE)
    shops = GroupIntercepts(SHOPS, active_dims=[1])
    dual = DualSVGP((X, Y), shops, likelihood, GroupFeatures(shops))
    dual.assign_sites(dual.pass_over_data().sites)
    assert dual.has_q()
    sites = dual.sites
    dual.assign_sites(sites._replace(precisions=-sites.precisions))
    assert not dual.has_q()
    with pytest.raises(tf.errors.InvalidArgumentError, match="outweigh the prior"):
        dual.predict_f(NEW)


def test_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "FEWEST", 1)

    def predictions() -> list[Any]:
        dtype = gpflow.default_float()
        data = X.astype(dtype), (Y > 0).astype(dtype)
        kernel, features = blocks(3)
        model = StructuredSGPR(data, kernel, features, noise_variance=NOISE)
        dual = DualSVGP(data, kernel, gpflow.likelihoods.Bernoulli(), features)
        gpflow.set_trainable(list(model.feature_parameters.values()), False)
        dual.assign_sites(dual.pass_over_data().sites)
        new = NEW.astype(dtype)
        found = [model.elbo(), dual.elbo()]
        for each in (model, dual):
            found += [*each.predict_f(new), each.predict_f(new, full_cov=True)[1]]
        assert all(part.dtype == dtype for part in found)
        return found

    expected = predictions()
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        found = predictions()
    for single, double in zip(found, expected, strict=True):
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=1e-3)
