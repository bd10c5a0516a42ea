"""DualSVGP against gpflow's SVGP with the same q; its rows, and errors."""

from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow import likelihoods as of
from gpflow.likelihoods import Bernoulli, Gaussian

import interdomain as idm
from interdomain._targets import check_targets
from interdomain.models import DualSVGP
from tests import parts as built
from tests.parts import frozen, with_harmonics

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, [60, 2])
F = 2 * np.sin(4 * X[:, :1]) + X[:, 1:]
LABELS = (F + 0.5 * RNG.normal(size=F.shape) > 0).astype(float)

TARGETS: dict[str, tuple[Any, Any]] = {
    "probit": (Bernoulli, LABELS),
    "logit": (lambda: Bernoulli(invlink=tf.sigmoid), LABELS),
    "Poisson": (of.Poisson, RNG.poisson(np.exp(F / 2)).astype(float)),
    "StudentT": (lambda: of.StudentT(scale=0.3, df=3.0), F + 0.2 * RNG.standard_t(3, F.shape)),
    "heteroskedastic": (of.HeteroskedasticTFPConditional, F + 0.1 * RNG.normal(size=F.shape)),
    "MultiClass": (lambda: of.MultiClass(3), np.digitize(F, [-1.0, 1.0]).astype(float)),
    "two outputs": (lambda: Gaussian(0.2), np.hstack([F, -F]) + 0.1 * RNG.normal(size=[60, 2])),
}


def harmonics() -> tuple[Any, Any]:
    kernel = idm.kernels.SphericalMatern52(variance=1.5, lengthscale=0.6)
    return with_harmonics(kernel, 3, fixed=True)


def points() -> tuple[Any, Any]:
    features = gpflow.inducing_variables.InducingPoints(X[:7].copy())
    return frozen(gpflow.kernels.Matern52(variance=1.5, lengthscales=0.5), features)


def finite_rank() -> tuple[Any, Any]:
    return built.finite_rank(*harmonics())


def model_of(name: str = "probit", parts: Any = harmonics, **arguments: Any) -> DualSVGP:
    make, Y = TARGETS[name]
    kernel, features = parts()
    data, likelihood = arguments.pop("data", (X, Y)), arguments.pop("likelihood", None) or make()
    return DualSVGP(data, kernel, likelihood, features, **({"progress": False} | arguments))


def step(model: DualSVGP, share: float = 1.0) -> float:
    """A natural-gradient step; the bound before it."""
    found = model.pass_over_data()
    model.assign_sites(model.sites.mixed(found.clipped, share))
    return found.elbo


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("probit", harmonics),
        ("Poisson", points),
        ("StudentT", harmonics),
        ("heteroskedastic", finite_rank),
        ("MultiClass", points),
        ("two outputs", harmonics),
    ],
)
def test_the_bound_and_predictions_are_those_of_svgp_with_the_same_q(name: str, parts: Any) -> None:
    model = model_of(name, parts)
    model.shrink_q(0.1)
    step(model, 0.3)
    svgp = model.to_svgp()
    assert float(model.elbo()) == pytest.approx(float(svgp.elbo((X, TARGETS[name][1]))), rel=1e-9)
    new = np.linspace(-0.9, 0.9, 8).reshape(4, 2)
    for ours, theirs in zip(model.predict_f(new), svgp.predict_f(new), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("name", "parts"), [("probit", harmonics), ("two outputs", finite_rank)])
def test_at_tangent_sites_the_slopes_are_those_of_svgp(name: str, parts: Any) -> None:
    outputs = TARGETS[name][1].shape[1]
    constant = gpflow.mean_functions.Constant(np.full(outputs, 0.2))
    model = model_of(name, parts, mean_function=constant)
    model.shrink_q(0.01)
    for _ in range(1 if name == "two outputs" else 16):
        step(model)
    svgp = model.to_svgp()
    shared = [p.unconstrained_variable for p in model.kernel.trainable_parameters]
    shared.append(constant.c.unconstrained_variable)
    q_mu = svgp.q_mu.unconstrained_variable
    with tf.GradientTape() as tape:
        bound = svgp.elbo((X, TARGETS[name][1]))
    *wanted, q_gradient = tape.gradient(bound, [*shared, q_mu])
    with tf.GradientTape() as tape:
        surrogate = model.maximum_log_likelihood_objective()
    found = tape.gradient(surrogate, shared)
    np.testing.assert_allclose(q_gradient, np.zeros_like(q_gradient), atol=1e-7)  # the optimal q
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


def test_a_gaussian_likelihood_takes_one_step_to_the_collapsed_bound() -> None:
    kernel, features = harmonics()
    Y = TARGETS["two outputs"][1]
    model = DualSVGP((X, Y), kernel, Gaussian(0.2), features, batch_size=7, progress=False)
    step(model)
    exact = idm.models.StructuredSGPR((X, Y), kernel, features, noise_variance=0.2, charge="trace")
    assert float(model.elbo()) == pytest.approx(float(exact.elbo()), rel=1e-10)


def test_a_pass_is_not_repeated_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With other features a model begins again."""
    model, other = model_of(), model_of()
    step(other)
    assert all(np.any(part) for part in other.sites)
    other.kernel.bias_variance.assign(2.0)
    assert not any(np.any(part) for part in other.sites)
    first = model.pass_over_data()
    monkeypatch.setattr(model, "_pass", None)
    assert model.pass_over_data() is first
    model.kernel.variance.assign(2.0)
    with pytest.raises(TypeError):
        model.pass_over_data()


def test_draws_of_softmax_are_the_same_in_every_pass() -> None:
    model, Y = model_of("MultiClass", likelihood=of.Softmax(3)), TARGETS["MultiClass"][1]
    bounds = [model._pass().elbo for _ in range(2)]
    assert bounds[0] == bounds[1]
    stochastic = [float(model.to_svgp().elbo((X, Y.astype(int)))) for _ in range(10)]
    assert abs(bounds[0] - np.mean(stochastic)) < 6 * np.std(stochastic)


def test_labels_of_minus_one_and_one_mean_the_same_as_zero_and_one() -> None:
    model = model_of()
    check_targets(model.likelihood, 2 * LABELS - 1)
    zero_and_one, signs = model.sites_of(X, LABELS), model.sites_of(X, 2 * LABELS - 1)
    for one, other in zip(zero_and_one, signs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_features_that_are_trained_are_refused() -> None:
    model = model_of()
    gpflow.set_trainable(model.kernel.bias_variance, True)
    with pytest.raises(ValueError, match="model: the features depend on kernel.bias_variance"):
        model.training_loss()


def test_a_narrow_q_is_the_prior_with_a_part_of_its_covariance() -> None:
    model = model_of("two outputs")
    model.shrink_q(0.2)
    svgp = model.to_svgp()
    np.testing.assert_array_equal(svgp.q_mu, 0.0)
    for root in svgp.q_sqrt.numpy():
        np.testing.assert_allclose(root @ root.T, 0.2 * np.eye(len(root)), rtol=1e-9, atol=1e-12)


def test_a_copy_has_the_same_q_and_parameters_of_its_own() -> None:
    model = model_of("Poisson")
    step(model)
    other = gpflow.utilities.deepcopy(model)
    np.testing.assert_allclose(other.predict_f(X)[0], model.predict_f(X)[0], rtol=1e-12)
    other.kernel.variance.assign(3.0)
    assert float(other.elbo()) != pytest.approx(float(model.elbo()))


class Cautious(Bernoulli):
    """A user's likelihood, whose labels are wrong every tenth time."""

    def _scalar_log_prob(self, X: Any, F: Any, Y: Any) -> Any:
        right = tf.where(tf.equal(Y, 1), tf.sigmoid(F), tf.sigmoid(-F))
        return tf.math.log(0.1 + 0.8 * right)


def test_a_subclass_with_a_density_of_its_own_is_asked_for_it() -> None:
    likelihood = Cautious(invlink=tf.sigmoid)
    model = model_of("probit", finite_rank, likelihood=likelihood)
    mean, variance = model.predict_f(X)
    expected = tf.reduce_sum(likelihood.variational_expectations(X, mean, variance, LABELS))
    np.testing.assert_allclose(model.elbo(), expected, rtol=1e-10)  # q is the prior
