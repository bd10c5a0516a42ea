"""The first sites of a fit, the steps of the mean function, and fits that end without convergence.

Oracles: SciPy's minimisers of the bound of a row and of a level, differences, and
closed forms.
"""

import warnings
from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.optimize
import tensorflow as tf
from gpflow import likelihoods as of
from gpflow.likelihoods import Ordinal, Poisson
from gpflow.mean_functions import Constant, Linear

from interdomain import fit
from interdomain.inducing_variables import SplineFeatures
from interdomain.models import DualSVGP
from interdomain.models.dual_svgp.passes import Passes
from interdomain.models.dual_svgp.start import level_of, moments_of_rows
from interdomain.training.lbfgs import fit_by_lbfgs
from tests.parts import frozen, with_waves

from .test_likelihoods_and_targets import bins

N = 200
X = np.linspace(0.0, 1.0, N)[:, None]
RNG = np.random.default_rng(0)
TREND = np.exp(0.1 * np.sin(6 * X))


def poisson(counts: Any) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    """The expectations of Poisson counts, in closed form: their values, alpha and beta."""

    def moments(mean: Any, variance: Any) -> tuple[Any, Any, Any]:
        with np.errstate(over="ignore"):
            rate = np.exp(mean + variance / 2)
        return np.sum(counts * mean - rate, axis=1), counts - rate, rate

    return moments


def student(values: Any) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    """The moments of Student-t with 3 degrees of freedom and scale 1, at narrow q."""

    def moments(mean: Any, variance: Any) -> tuple[Any, Any, Any]:
        square = np.square(values - mean)
        beta = 4 * (3 - square) / np.square(3 + square)
        logs = -2 * np.log1p(square / 3) - variance * beta / 2
        return np.sum(logs, axis=1), 4 * (values - mean) / (3 + square), beta

    return moments


def test_the_level_is_that_of_scipy() -> None:
    """Under each charge: none, that of a fixed prior variance, and that of one that is trained."""
    charges: dict[str, Callable[[float], float]] = {
        "mean": lambda g: 0.0,
        "fixed": lambda g: g**2 / 3,
        "trained": lambda g: np.log1p(g**2 / 1.5) / 2,
    }
    mean = np.full([N, 1], 0.5)
    for total in (1, 300, 10**5, 10**8):
        counts = RNG.multinomial(total, np.full(N, 1 / N))[:, None].astype(float)
        for name, charge in charges.items():
            variance = np.inf if name == "mean" else 1.5
            found = level_of(poisson(counts), mean, 3.0, variance, name == "trained")

            def loss(g: Any, charge: Any = charge, counts: Any = counts) -> float:
                rate = np.exp(g + 0.5 + 5e-5)
                return float(charge(g) - 3.0 * (np.sum(counts) * g - N * rate))

            wanted = scipy.optimize.minimize_scalar(loss, bounds=(-30, 30), method="bounded")
            assert loss(float(found[0])) <= wanted.fun + 1e-2 + 1e-12 * abs(wanted.fun), (
                total,
                name,
            )
    far = 1000 + RNG.standard_t(3, size=[N, 1])
    found = level_of(student(far), np.zeros([N, 1]), 1.0, 1.0, True)
    np.testing.assert_allclose(found, 1000, atol=1)
    assert abs(level_of(student(far), np.zeros([N, 1]), 1.0, 1.0, False)[0]) < 1


def test_the_q_of_each_row_is_that_of_scipy() -> None:
    counts = np.array([[0.0], [1.0], [30.0], [8_100.0], [442_000.0]])
    for variance, level in ((1.0, 0.0), (100.0, 5.0), (1e9, 0.0)):
        mean = np.full_like(counts, level)
        q = moments_of_rows(poisson(counts), mean, np.full_like(counts, variance))
        for y, *found in zip(counts[1:, 0], *(part[1:, 0] for part in q), strict=True):

            def loss(x: Any, y: float = y, v: float = variance, m: float = level) -> float:
                s = np.exp(x[1])
                kl = (s / v - 1 - np.log(s / v) + (x[0] - m) ** 2 / v) / 2
                return float(kl - y * x[0] + np.exp(x[0] + s / 2))

            start = np.log([y, 1 / y])
            wanted = scipy.optimize.minimize(loss, start, method="Nelder-Mead", tol=1e-9)
            value = loss([found[0], np.log(found[1])])
            assert value <= wanted.fun + 0.02 + 1e-9 * abs(wanted.fun), (variance, y)
        assert q[0][0, 0] < level and np.all(q[1] <= variance)


def splines(size: int = 8) -> tuple[Any, Any]:
    return gpflow.kernels.Matern52(lengthscales=0.5), SplineFeatures(0.0, 1.0, size, 3)


def waves(size: int = 9) -> tuple[Any, Any]:
    return with_waves(gpflow.kernels.Matern32(lengthscales=0.5), X, size)


def points() -> tuple[Any, Any]:
    features = gpflow.inducing_variables.InducingPoints(X[::30].copy())
    return frozen(gpflow.kernels.Matern52(lengthscales=0.5), features)


def model_of(parts: Any, Y: Any, likelihood: Any = None, mean: Any = None) -> DualSVGP:
    kernel, features = parts()
    likelihood = Poisson() if likelihood is None else likelihood
    return DualSVGP((X, Y), kernel, likelihood, features, mean_function=mean, progress=False)


def test_derivatives_by_the_mean_are_those_of_tensorflow() -> None:
    """A step along them ends where log Z is stationary: a mean of two functions, and one number
    that both share."""
    Y = RNG.poisson(3.0, size=[N, 2]).astype(float)
    two = Linear(np.full([1, 2], 0.3), np.full(2, -0.1))
    for parts, mean in ((splines, two), (waves, Constant(0.2)), (points, two)):
        model = model_of(parts, Y, mean=mean)
        model.start()
        variables = list(mean.trainable_variables)
        for step in (0.0, 1.0):
            Passes(model, None)._step_of_mean(step)
            with tf.GradientTape() as tape:
                value = model.maximum_log_likelihood_objective()
            slopes = [np.ravel(part) for part in tape.gradient(value, variables)]
            found, curvatures = model.slopes_of_mean(variables)
            np.testing.assert_allclose(found, np.concatenate(slopes), rtol=1e-6, atol=1e-5)
            assert np.all(np.linalg.eigvalsh(curvatures) > 0)
        np.testing.assert_allclose(found, 0.0, atol=1e-5)


def counts_of(total: int) -> Any:
    counts = np.zeros([N, 1])
    counts[RNG.choice(N, total, replace=False)] = 1.0
    return counts


def fitted(model: DualSVGP, **how: Any) -> Any:
    """The result of a fit, which warns unless it has converged."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit(model, progress=False, **how)
    said = [warning for warning in caught if "has not converged" in str(warning.message)]
    assert result.converged != bool(said), result.message
    return result


def test_rare_counts_train_the_mean_function() -> None:
    """The optimum does not depend on where the mean function starts. It is no worse than a constant
    rate, and the expected total is that of the rows, exactly."""
    for parts, start, total in ((splines, 0.0, 1), (waves, 2.0, 10)):
        model = model_of(parts, counts_of(total), mean=Constant([start]))
        result = fitted(model, steps=40, options={"tolerance": 1e-4})
        assert result.converged and result.elbo > total * np.log(total / N) - total - 0.05
        mean, variance = model.predict_f(X)
        assert np.sum(np.exp(mean + variance / 2)) == pytest.approx(total, rel=0.02)


def test_counts_far_from_the_prior() -> None:
    """Counts of 442,000 start well under a mean function of zero."""
    Y = RNG.poisson(442_000 * TREND).astype(float)
    model = model_of(waves, Y)
    result = fitted(model)
    assert result.converged and result.steps < 12
    np.testing.assert_allclose(model.predict_f(X)[0], np.log(442_000 * TREND), atol=0.02)


def test_a_fit_that_has_not_converged_says_so() -> None:
    """By its steps, or because no step raises the bound; but not a single pass."""
    Y = counts_of(60)
    parts = waves(3)
    gpflow.set_trainable(parts[0], False)
    model = model_of(lambda: parts, Y)
    with pytest.warns(UserWarning, match="steps: the DualSVGP has not converged after 2 passes"):
        result = fit(model, progress=False, steps=2, options={"tolerance": 0})
    assert result.reason == "steps" and "raised the bound by" in result.message
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fit(model, progress=False, steps=1)
    passes = iter([0.0, *range(-1, -20, -1)])
    pass_over_data = model.pass_over_data
    model.pass_over_data = lambda: pass_over_data()._replace(elbo=float(next(passes)))
    with pytest.warns(UserWarning, match="model: the DualSVGP has not converged: after 8 pass"):
        assert fit(model, progress=False).reason == "stalled"


def test_ordinal_values_in_the_outer_bins() -> None:
    """Under the prior, against SciPy's densities, and differences of slopes."""
    Y = np.digitize(2 * np.sin(6 * X) + 0.5 * RNG.normal(size=X.shape), [-1.0, 0.0, 1.0])
    model = model_of(points, Y.astype(float), Ordinal(np.array([-1.0, 0.0, 1.0])))
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    logs = [bins(y, nodes) @ weights / np.sqrt(2 * np.pi) for y in np.ravel(Y)]
    assert float(model.elbo()) == pytest.approx(np.sum(logs), rel=1e-6)
    found, h = model.pass_over_data(), 1e-4
    variable, slopes = model.likelihood.sigma.unconstrained_variable, []
    for step in (h, -2 * h):
        variable.assign_add(step)
        slopes.append(float(model.pass_over_data().slopes[0]))
    assert found.curvatures[0, 0] == pytest.approx((slopes[0] - slopes[1]) / (2 * h), rel=1e-4)


class Parabola(gpflow.models.BayesianModel, gpflow.models.InternalDataTrainingLossMixin):  # type: ignore[misc]
    """A bound with a large constant."""

    def __init__(self) -> None:
        super().__init__()
        self.x = gpflow.Parameter([1.0, 1.0])

    def maximum_log_likelihood_objective(self) -> tf.Tensor:
        return 1e9 - tf.reduce_sum(tf.constant([1.0, 0.01], tf.float64) * (self.x - 3.0) ** 2)


def test_a_constant_does_not_end_the_training_between_passes() -> None:
    """SciPy's tolerance is a share of the loss: with it, the second number stays where it is."""
    early, late = Parabola(), Parabola()
    fit_by_lbfgs(early, steps=20)
    fit_by_lbfgs(late, steps=20, enough=1e-7)
    assert abs(float(early.x[1]) - 3) > 0.1
    np.testing.assert_allclose(late.x, 3.0, atol=1e-2)


TREND_OF_MEAN = np.sin(6 * X)
STUDENT = TREND_OF_MEAN + 0.3 * RNG.standard_t(3, size=X.shape)
INNER = 1 + (STUDENT > 0.5).astype(float)  # the stock bound is NaN in the outer bins
CASES: dict[str, tuple[Any, Any, float]] = {
    "Gaussian": (lambda: of.Gaussian(0.1), 1000 + STUDENT, 1000.0),
    "StudentT": (lambda: of.StudentT(scale=0.3), 1000 + STUDENT, 1000.0),
    "Poisson": (Poisson, counts_of(2), np.log(0.01)),
    "Bernoulli": (of.Bernoulli, counts_of(10), -1.6),
    "logit": (lambda: of.Bernoulli(invlink=tf.sigmoid), 1 - counts_of(2), 4.6),
    "Exponential": (of.Exponential, RNG.exponential(1e-3 * TREND), np.log(1e-3)),
    "Gamma": (lambda: of.Gamma(shape=2.0), RNG.gamma(2.0, 5e4 * TREND), np.log(5e4)),
    "Beta": (lambda: of.Beta(scale=5.0), RNG.beta(0.5, 4.5, size=X.shape), -1.3),
    "Ordinal": (lambda: of.Ordinal(np.array([-1.0, 0.0, 1.0])), INNER, 0.0),
    "heteroskedastic": (of.HeteroskedasticTFPConditional, 30 + STUDENT, 30.0),
    "switched": (
        lambda: of.SwitchedLikelihood([of.Gaussian(0.3), of.StudentT(scale=0.5)]),
        np.hstack([100 + STUDENT, np.arange(N)[:, None] % 2.0]),
        100.0,
    ),
    "large counts": (Poisson, RNG.poisson(1e5 * TREND).astype(float), np.log(1e5)),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:data. Y is up to")
@pytest.mark.parametrize("name", CASES)
def test_the_optimum_is_that_of_a_stock_svgp_at_every_level(name: str) -> None:
    """SciPy trains a stock SVGP from a mean function at the level; ours starts from zero."""
    make, Y, level = CASES[name]
    parts = waves()
    gpflow.set_trainable(parts[0], False)
    mean = Constant(np.zeros(2 if name == "heteroskedastic" else 1))
    model = model_of(lambda: parts, Y, make(), mean)
    result = fitted(model)
    assert result.converged
    svgp = model.to_svgp()
    size, latents = svgp.q_mu.shape
    svgp.q_mu.assign(np.zeros([size, latents]))
    svgp.q_sqrt.assign(np.tile(0.1 * np.eye(size), [latents, 1, 1]))
    mean.c.assign([level, 0.0][:latents])
    gpflow.utilities.multiple_assign(model.likelihood, gpflow.utilities.read_values(make()))
    loss = svgp.training_loss_closure((X, Y), compile=True)
    options = {"maxiter": 2000, "maxfun": 4000}
    gpflow.optimizers.Scipy().minimize(loss, svgp.trainable_variables, options=options)
    assert result.elbo > -float(loss()) - 0.05
