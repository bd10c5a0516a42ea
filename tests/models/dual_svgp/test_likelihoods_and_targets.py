"""All of GPflow's likelihoods, with right and wrong targets: each right or refused.

Where q is the prior, the bound is a sum over the rows of the expected log density under the prior
of f. The table has the densities of SciPy, with which each bound that a model returns is compared.
Targets that mean nothing must be refused, by an error that names Y or the likelihood.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gpflow
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_probability as tfp
from gpflow import likelihoods as of
from scipy import integrate, stats

import interdomain as idm
from interdomain.training.data_checks import batches_of, check_columns
from tests.models.svgp.small import kernel, points

N, VARIANCE = 24, 1.5  # that of the kernel
X = np.linspace(-1, 1, N)[:, None]
RNG = np.random.default_rng(0)
LABELS = np.arange(N)[:, None] % 2.0
THREE = np.arange(N)[:, None] % 3.0
REAL = np.sin(3 * X) + 0.1
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
NODES, WEIGHTS = NODES * np.sqrt(VARIANCE), WEIGHTS / np.sqrt(2 * np.pi)


def probit(f: Any) -> Any:
    """GPflow's, which keeps away from zero and one."""
    return stats.norm.cdf(f) * (1 - 2e-3) + 1e-3


def bins(y: Any, f: Any) -> Any:
    ends = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf])
    lower, upper = (stats.norm.cdf(ends[int(y) + more] - f) for more in (0, 1))
    return np.log((upper - lower) * (1 - 2e-3) + 1e-6)


def beta(y: Any, f: Any) -> Any:
    return stats.beta.logpdf(y, 2 * probit(f), 2 * (1 - probit(f)))


def normal(y: Any, f: Any, variance: float = 0.3) -> Any:
    return stats.norm.logpdf(y, f, np.sqrt(variance))


class Case(NamedTuple):
    """A likelihood, targets that it takes, and some that are out of its range.

    The density is that of a value of Y at values of f; of several functions, there is the sum over
    the rows of its expectation.
    """

    make: Callable[[], Any]
    Y: Any
    density: Callable[..., Any] | None
    outside: Any = None
    latents: int = 1
    expected: Callable[[Any], float] | None = None
    rtol: float = 1e-6


def row_sum(values: Any, density: Callable[..., Any]) -> float:
    return float(sum(WEIGHTS @ density(y, NODES) for y in np.ravel(values)))


def heteroskedastic(Y: Any) -> float:
    first, second = np.meshgrid(NODES, NODES)
    return float(
        sum(WEIGHTS @ stats.norm.logpdf(y, first, np.exp(second)) @ WEIGHTS for y in np.ravel(Y))
    )


def by_source(Y: Any) -> float:
    return row_sum(Y[Y[:, 1] == 0, 0], normal) + row_sum(
        Y[Y[:, 1] == 1, 0], lambda y, f: normal(y, f, 0.7)
    )


def logits(Y: Any) -> float:
    f = np.sqrt(VARIANCE) * RNG.normal(size=[100_000, 3])
    return len(Y) * float(np.mean(f[:, 0] - np.log(np.sum(np.exp(f), axis=1))))


def by_draws(likelihood: Any) -> Any:
    likelihood.num_monte_carlo_points = 2_000
    return likelihood


def normal_of_two(F: Any) -> Any:
    return tfp.distributions.Normal(F[..., :1], tf.exp(F[..., 1:]))


TWO_FUNCTIONS = REAL, None, None, 2, heteroskedastic, 1e-4
CASES: Mapping[str, Case] = {
    "Bernoulli": Case(
        of.Bernoulli, LABELS, lambda y, f: np.log(np.where(y == 1, probit(f), 1 - probit(f))), 2.0
    ),
    "Beta": Case(lambda: of.Beta(scale=2.0), 0.1 + 0.25 * THREE, beta, 1.0),
    "Exponential": Case(
        of.Exponential, 0.5 + THREE, lambda y, f: stats.expon.logpdf(y, scale=np.exp(f)), -1.0
    ),
    "Gamma": Case(
        lambda: of.Gamma(shape=2.0),
        0.5 + THREE,
        lambda y, f: stats.gamma.logpdf(y, 2.0, scale=np.exp(f)),
        0.0,
    ),
    "Gaussian": Case(lambda: of.Gaussian(0.3), REAL, normal),
    "GaussianMC": Case(lambda: by_draws(of.GaussianMC(0.3)), REAL, normal, rtol=0.1),
    "HeteroskedasticTFPConditional": Case(of.HeteroskedasticTFPConditional, *TWO_FUNCTIONS),
    "MultiLatentTFPConditional": Case(
        lambda: of.MultiLatentTFPConditional(2, normal_of_two), *TWO_FUNCTIONS
    ),
    "MultiClass": Case(
        lambda: of.MultiClass(3),
        THREE,
        None,
        3.0,
        latents=3,
        expected=lambda Y: len(Y) * (np.log(1 - 1e-3) + 2 * np.log(1e-3 / 2)) / 3,
        rtol=1e-4,
    ),
    "Ordinal": Case(lambda: of.Ordinal(np.array([-1.0, 0.0, 1.0])), 1 + LABELS, bins, 4.0),
    "Poisson": Case(of.Poisson, THREE, lambda y, f: stats.poisson.logpmf(y, np.exp(f)), 0.5),
    "Softmax": Case(lambda: by_draws(of.Softmax(3)), THREE, None, 3.0, 3, logits, rtol=0.05),
    "StudentT": Case(
        lambda: of.StudentT(scale=0.5), REAL, lambda y, f: stats.t.logpdf(y, 3, f, 0.5)
    ),
    "SwitchedLikelihood": Case(
        lambda: of.SwitchedLikelihood([of.Gaussian(0.3), of.Gaussian(0.7)]),
        np.hstack([REAL, LABELS]),
        None,
        2.0,
        expected=by_source,
    ),
}


def parts() -> dict[str, Any]:
    return {"kernel": kernel(), "inducing_variable": points()}


def svgp(likelihood: Any, latents: int) -> Any:
    return gpflow.models.SVGP(likelihood=likelihood, num_latent_gps=latents, num_data=N, **parts())


def in_batches(case: Case) -> Callable[[Any], float]:
    """The bound of what a fit would give an SVGP, after the checks of a fit."""
    model = svgp(case.make(), case.latents)

    def bound(data: Any) -> float:
        batches = batches_of(model, data, batch_size=None, seed=0)
        check_columns(model, batches.columns)
        return float(model.elbo(batches.batch(0)))

    return bound


def in_passes(case: Case) -> Callable[[Any], float]:
    """The bound of a DualSVGP, traced once for each likelihood."""
    model = None

    def bound(data: Any) -> float:
        nonlocal model
        if model is None:
            model = idm.models.DualSVGP(data, likelihood=case.make(), **parts())
            assert model.num_latent_gps == case.latents
            return float(model.elbo())
        return float(model.model_of(data).elbo())

    return bound


def kinds_of(case: Case) -> dict[str, tuple[Any, Any | None]]:
    """Data by kind, and the targets that they mean; None if they mean nothing."""
    Y = case.Y
    kinds: dict[str, tuple[Any, Any | None]] = {
        "float": ((X, Y), Y),
        "float32": ((X, Y.astype(np.float32)), Y.astype(np.float32).astype(float)),
        "flat": ((X, Y[:, 0]), None),
        "NaN": ((X, np.where(np.arange(N)[:, None] == 3, np.nan, Y)), None),
        "one-hot": ((X, np.eye(3)[THREE[:, 0].astype(int)]), None),
    }
    if np.all(Y == np.round(Y)):
        kinds["integer"] = (X, Y.astype(int)), Y
    if np.all((Y == 0) | (Y == 1)) or case.latents == 3:
        kinds["boolean"] = (X, LABELS > 0), LABELS
    if case.outside is not None:
        last = np.arange(N)[:, None] == 3
        last = last & (np.arange(Y.shape[1]) == Y.shape[1] - 1)
        kinds["out of range"] = (X, np.where(last, case.outside, Y)), None
    return kinds


def expected(case: Case, Y: Any) -> float:
    return row_sum(Y, case.density) if case.expected is None else case.expected(Y)


def test_the_table_has_all_likelihoods_of_gpflow() -> None:
    concrete = {
        name
        for name, kind in vars(of).items()
        if inspect.isclass(kind) and issubclass(kind, of.Likelihood)
        if not inspect.isabstract(kind)
    }
    assert set(CASES) == concrete


@pytest.mark.parametrize("make", [in_batches, in_passes], ids=["SVGP", "DualSVGP"])
@pytest.mark.parametrize("name", CASES)
def test_right_or_refused(name: str, make: Any) -> None:
    bound = make(CASES[name])
    for kind, (data, Y) in kinds_of(CASES[name]).items():
        try:
            found = bound(data)
        except ValueError as error:
            assert Y is None, f"{kind}: {error}"
            assert re.search(r"\b[XY]\b|likelihood", str(error)), f"{kind}: {error}"
        else:
            assert Y is not None, f"{kind}: {found}"
            assert found == pytest.approx(expected(CASES[name], Y), rel=CASES[name].rtol), kind


def test_a_function_for_each_column() -> None:
    """A likelihood has as many functions as columns of Y; a switched one has a column more."""
    Y = np.eye(3)[THREE[:, 0].astype(int)]
    for name in ("Gaussian", "Bernoulli", "Poisson", "SwitchedLikelihood"):
        case = CASES[name]
        latents = 2 if name == "SwitchedLikelihood" else 3
        value = expected(case, Y)
        if name == "SwitchedLikelihood":
            value = sum(case.expected(Y[:, [column, 2]]) for column in (0, 1))
        model = idm.models.DualSVGP((X, Y), likelihood=case.make(), progress=False, **parts())
        assert model.num_latent_gps == latents
        assert float(model.elbo()) == pytest.approx(value, rel=case.rtol)
        bound = in_batches(case._replace(latents=latents))((X, Y))
        assert bound == pytest.approx(value, rel=case.rtol)


@pytest.mark.parametrize("base", ["exp", "softplus"])
def test_quantiles_under_noise_with_its_own_latent_gp(base: str) -> None:
    transform = gpflow.utilities.positive(base=base)
    likelihood = of.HeteroskedasticTFPConditional(scale_transform=transform)
    model = gpflow.models.SVGP(kernel(), likelihood, points(), num_latent_gps=2)
    model.q_mu.assign(RNG.normal(size=model.q_mu.shape))
    levels = np.array([0.001, 0.05, 0.5, 0.7, 0.95])
    new = np.array([[0.1], [5.0]])
    found = idm.predict_quantiles(model, new, levels, progress=False)
    assert found.shape == (2, 1, 5)
    for row, (mean, variance) in enumerate(
        zip(*map(np.asarray, model.predict_f(new)), strict=True)
    ):

        def density(g: float, quantile: Any, mean: Any = mean, variance: Any = variance) -> Any:
            scale = float(transform(np.float64(g)))
            spread = np.sqrt(variance[0] + scale**2)
            weight = stats.norm.pdf(g, mean[1], np.sqrt(variance[1]))
            return weight * stats.norm.cdf(quantile, mean[0], spread)

        ends = mean[1] + 9 * np.sqrt(variance[1]) * np.array([-1, 1])
        for level, quantile in zip(levels, found[row, 0], strict=True):
            total = integrate.quad(density, *ends, args=(quantile,), epsabs=1e-13, limit=200)[0]
            np.testing.assert_allclose(total, level, rtol=1e-8)
    student = of.HeteroskedasticTFPConditional(lambda m, s: tfp.distributions.StudentT(4.0, m, s))
    model = gpflow.models.SVGP(kernel(), student, points(), num_latent_gps=2)
    with pytest.raises(ValueError, match="of normal distributions"):
        idm.predict_quantiles(model, new, levels)
