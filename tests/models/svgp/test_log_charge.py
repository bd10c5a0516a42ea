"""``charge="log"``: between "trace" and the evidence if log-concave, refused for other likelihoods.

The evidence is an integral over f at one or two places, by Gauss-Hermite quadrature.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import Kernel, Matern32, SquaredExponential
from gpflow.likelihoods import (
    Bernoulli,
    Beta,
    Exponential,
    Gamma,
    Gaussian,
    HeteroskedasticTFPConditional,
    Likelihood,
    MultiClass,
    Ordinal,
    Poisson,
    Softmax,
    StudentT,
    SwitchedLikelihood,
)

import interdomain as idm
from interdomain.models import HVGP, SVGP, AdditiveSVGP, JointQ, OrthogonalSVGP
from interdomain.transforms import Negation
from tests.conformance.helpers import assert_close, assert_slopes, compiled

Array = np.ndarray


class Logits(gpflow.likelihoods.MultiLatentLikelihood):
    """A softmax of two latent GPs, by quadrature. It says itself that it is log-concave."""

    log_concave = True

    def __init__(self) -> None:
        super().__init__(latent_dim=2)

    def _log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return tf.math.log_sigmoid((F[..., 1] - F[..., 0]) * (2 * Y[..., 0] - 1))

    def _conditional_mean(self, X: Any, F: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    _conditional_variance = _conditional_mean


class Laplace(gpflow.likelihoods.ScalarLikelihood):
    """A log-concave density with a kink, of a user."""

    log_concave = True

    def _scalar_log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
        return -tf.sqrt((F - Y) ** 2 + 1e-2)

    def _conditional_mean(self, X: Any, F: tf.Tensor) -> tf.Tensor:
        raise NotImplementedError

    _conditional_variance = _conditional_mean


def draw(rng: np.random.Generator, num_rows: int) -> dict[str, tuple[Likelihood, Array]]:
    """Log-concave likelihoods with random targets."""
    shape = num_rows, 1
    labels, counts = rng.integers(0, 2, shape), rng.poisson(2.0, shape)
    reals, positive = rng.normal(size=shape), rng.gamma(1.0, size=shape)
    switched = np.concatenate([counts, rng.integers(0, 2, shape)], axis=1)
    both = SwitchedLikelihood([Gaussian(0.5), Poisson()])
    cases = {
        "Gaussian": (Gaussian(0.5), reals),
        "Bernoulli": (Bernoulli(invlink=tf.sigmoid), labels),
        "Poisson": (Poisson(), counts),
        "Poisson, softplus": (Poisson(invlink=tf.math.softplus), counts),
        "Exponential": (Exponential(), positive),
        "Gamma": (Gamma(), positive),
        "Switched": (both, switched),
        "Laplace": (Laplace(), reals),
        "Logits": (Logits(), labels),
    }
    return {name: (likelihood, Y.astype(float)) for name, (likelihood, Y) in cases.items()}


def log_evidence(model: SVGP, places: Array, X: Array, Y: Array, num_nodes: int = 40) -> float:
    """``log E prod_n p(y_n | f(x_n))`` for rows at a few places, of latent GPs with one prior."""
    size = len(places) * model.num_latent_gps
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij"), -1).reshape(-1, size)
    log_weights = np.log(weights / np.sum(weights))
    log_weights = np.sum(np.meshgrid(*[log_weights] * size, indexing="ij"), axis=0).reshape(-1)
    root = np.linalg.cholesky(model.kernel(places).numpy())
    f = np.einsum("pq,nql->npl", root, grid.reshape(-1, len(places), model.num_latent_gps))
    total = log_weights
    for x, y in zip(X, Y, strict=True):
        at = int(np.argmin(np.abs(places[:, 0] - x[0])))
        F = f[:, at] + model.mean_function(x[None]).numpy()
        rows = np.tile(x, [len(F), 1]), F, np.tile(y, [len(F), 1])
        total = total + model.likelihood.log_prob(*rows).numpy()
    return float(np.logaddexp.reduce(total))


def base_kernel(rng: np.random.Generator) -> Kernel:
    return SquaredExponential(*np.exp(rng.uniform(-1, 1, 2)))


def two_points(rng: np.random.Generator) -> Array:
    """They are apart, so that every q has a variance of a sensible size."""
    return rng.normal() + np.array([[0.0], [1.5]])


def joint(rng: np.random.Generator, likelihood: Likelihood, L: int, **options: Any) -> SVGP:
    kernel, Z = base_kernel(rng), InducingPoints(two_points(rng))
    return SVGP(kernel, likelihood, JointQ(kernel, Z, num_latent_gps=L, **options))


def additive(rng: np.random.Generator, likelihood: Likelihood, L: int, **options: Any) -> SVGP:
    kernel = base_kernel(rng) + Matern32()
    Z = [InducingPoints(two_points(rng)) for _ in range(2)]
    features = idm.inducing_variables.SumInducingVariables(Z)
    return AdditiveSVGP(kernel, likelihood, features, num_latent_gps=L, **options)


def harmonic(rng: np.random.Generator, likelihood: Likelihood, L: int, **options: Any) -> SVGP:
    Z = np.abs(two_points(rng)) + 0.2
    return HVGP(base_kernel(rng), likelihood, Z, Negation(), num_latent_gps=L, **options)


def orthogonal(rng: np.random.Generator, likelihood: Likelihood, L: int, **options: Any) -> SVGP:
    Z = [InducingPoints(rng.normal(size=(1, 1)) + shift) for shift in (0.0, 2.0)]
    variant = str(rng.choice(["solve", "odvgp"]))
    return OrthogonalSVGP(
        base_kernel(rng), likelihood, *Z, variant=variant, num_latent_gps=L, **options
    )


def problems(
    make: Callable[..., SVGP], seeds: Iterable[int]
) -> Iterator[tuple[str, SVGP, Array, tuple]]:
    """Random rows, targets, priors and q's of each likelihood. Every third q is the prior."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for name, (likelihood, Y) in draw(rng, 5).items():
            L = likelihood.latent_dim or 1
            places = rng.normal(size=(1 if L > 1 else 2, 1))
            X = places[rng.integers(0, len(places), len(Y))]
            options = {"whiten": bool(rng.integers(2)), "q_diag": bool(rng.integers(2))}
            model = make(rng, likelihood, L, **options)
            model.mean_function = gpflow.mean_functions.Constant(rng.normal(size=L))
            for mean, root in model.variational_parameters if seed % 3 else ():
                mean.assign(0.2 * rng.normal(size=mean.shape))
                root.assign(rng.uniform(0.3, 0.9) * tf.convert_to_tensor(root))
            yield f"{name}, seed {seed}, {options}", model, places, (X, Y)


def bounds(model: SVGP, data: tuple) -> list[float]:
    values = []
    for model.charge in ("trace", "log"):
        values.append(float(model.elbo(data)))
    return values


def assert_between(make: Callable[..., SVGP], seeds: Iterable[int]) -> None:
    gains = []
    with disable_check_shapes():
        for case, model, places, data in problems(make, seeds):
            trace, log = bounds(model, data)
            assert trace <= log <= log_evidence(model, places, *data) + 1e-5, case
            gains.append(log - trace)
    assert np.mean(gains) > 0.05


MAKES = [joint, additive, harmonic, orthogonal]


@pytest.mark.parametrize("make", MAKES)
def test_between_trace_and_evidence(make: Callable[..., SVGP]) -> None:
    assert_between(make, [MAKES.index(make)])


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKES)
def test_many_between_trace_and_evidence(make: Callable[..., SVGP]) -> None:
    assert_between(make, range(4, 9))


def untouched(kernel: Kernel, likelihood: Likelihood, mean: list[float], **options: Any) -> SVGP:
    """A model whose one inducing point is far from all rows: q(f) is the prior."""
    q = JointQ(kernel, InducingPoints(np.array([[1e3]])), num_latent_gps=len(mean))
    function = gpflow.mean_functions.Constant(mean)
    return SVGP(kernel, likelihood, q, mean_function=function, **options)


def test_never_below_trace() -> None:
    """A count of zero under a vague prior: 1 / (1 + beta r) alone has -1.046."""
    data = np.zeros([1, 1]), np.zeros([1, 1])
    model = untouched(SquaredExponential(20.0), Poisson(), [-10.0], charge="log")
    trace, log = bounds(model, data)
    assert_close(trace, -1.0, rtol=1e-12)
    assert trace <= log <= log_evidence(model, data[0], *data, num_nodes=200)


@pytest.mark.parametrize("name", ["Poisson", "Gamma", "Bernoulli", "Logits"])
def test_its_gradient(name: str) -> None:
    """To all parameters, along one random direction, by differences."""
    rng = np.random.default_rng(0)
    likelihood, Y = draw(rng, 6)[name]
    model = joint(rng, likelihood, likelihood.latent_dim or 1)
    model.charge = "log"
    data = rng.normal(size=(6, 1)), Y
    assert_slopes(lambda: model.elbo(data), model.trainable_variables, rng)


def test_minibatches_estimate_it() -> None:
    """The mean of the bounds of single rows is that of all rows, compiled."""
    cases = draw(np.random.default_rng(3), 4)
    for likelihood, Y in (cases[name] for name in ("Poisson", "Switched", "Logits")):
        rng = np.random.default_rng(1)
        model, X = joint(rng, likelihood, likelihood.latent_dim or 1), rng.normal(size=(4, 1))
        model.charge, model.num_data = "log", 4
        elbo = compiled(lambda *d, m=model: m.elbo(d), [None, 1], [None, Y.shape[1]])
        rows = [elbo(X[n : n + 1], Y[n : n + 1]) for n in range(4)]
        assert_close(np.mean(rows), elbo(X, Y), rtol=1e-12)
        assert_close(elbo(X, Y), model.elbo((X, Y)), rtol=1e-12)


def test_softmax_by_monte_carlo() -> None:
    """The choice of the share has draws of its own: the mean of many estimates is below the
    evidence, above the stock bound and that of the same likelihood by quadrature."""
    tf.random.set_seed(0)
    data = np.zeros([3, 1]), np.array([[0.0], [1.0], [1.0]])
    by_draws = untouched(SquaredExponential(2.0), Softmax(2), [0.3, 0.0], charge="log")
    by_draws.likelihood.num_monte_carlo_points = 20_000
    model = untouched(SquaredExponential(2.0), Logits(), [0.3, 0.0], charge="log")
    trace, log = bounds(model, data)
    evidence = log_evidence(model, data[0][:1], *data)
    targets = data[0], data[1].astype(np.int64)
    estimate = np.mean([by_draws.elbo(targets) for _ in range(10)])
    assert trace + 0.05 < estimate < evidence - 0.05
    np.testing.assert_allclose(estimate, log, atol=0.02)


def test_outputs_that_mix_latent_gps() -> None:
    """f = W g, with residuals of g: below the evidence of f."""
    rng = np.random.default_rng(2)
    W, mean = np.array([[1.0, 0.4], [-0.6, 1.1]]), gpflow.mean_functions.Constant([0.3, -0.2])
    parts = [SquaredExponential(1.5), SquaredExponential(0.7)]
    kernel = gpflow.kernels.LinearCoregionalization(parts, W)
    far = gpflow.inducing_variables.SharedIndependentInducingVariables(
        InducingPoints(np.array([[1e3]]))
    )
    data = np.zeros([4, 1]), rng.integers(0, 3, (4, 2)).astype(float)
    model = SVGP(kernel, Poisson(), JointQ(kernel, far), mean_function=mean, charge="log")
    trace, log = bounds(model, data)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    g = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), -1) * np.sqrt([1.5, 0.7])
    f = g @ W.T + [0.3, -0.2]
    logs = sum(np.sum(y * f - np.exp(f), -1) for y in data[1])
    logs -= sum(np.sum([np.log(np.prod(np.arange(1, k + 1))) for k in y]) for y in data[1])
    evidence = np.log(np.sum(np.outer(weights, weights) * np.exp(logs)) / (2 * np.pi))
    assert trace + 0.1 < log < evidence


CLASSES = np.array([[0.0]] * 20 + [[1.0]] * 20)
STUDENT = np.array([[0.153], [1.690], [-1.307]])
NOT_CONCAVE: dict[str, tuple[Callable[[], Likelihood], float, list[float], Array]] = {
    "MultiClass": (lambda: MultiClass(2), 1.0, [1.0, 0.0], CLASSES[19:21]),
    "MultiClass, 20 rows": (lambda: MultiClass(2), 1.0, [1.0, 0.0], CLASSES),
    "StudentT": (lambda: StudentT(0.457, 1.0), 0.111, [0.0], STUDENT),
}


@pytest.mark.parametrize("name", list(NOT_CONCAVE))
def test_what_would_exceed_the_evidence(name: str) -> None:
    """MATH.md, section 16. The likelihoods are refused, in all models and if they come later; one
    that says against the truth that it is log-concave shows why."""
    build, variance, mean, Y = NOT_CONCAVE[name]
    kernel, data = SquaredExponential(variance), (np.zeros([len(Y), 1]), Y)
    message = "charge must be 'trace' for a likelihood that is not known to be log-concave"
    with pytest.raises(ValueError, match=f"{message}, found 'log' with {type(build()).__name__}"):
        untouched(kernel, build(), mean, charge="log")
    model = untouched(kernel, Logits() if len(mean) > 1 else Gaussian(), mean, charge="log")
    model.likelihood = build()
    with pytest.raises(ValueError, match=message):
        model.elbo(data)
    model.likelihood.log_concave = True
    trace, log = bounds(model, data)
    # RobustMax has two values, so that MultiClass has a sum in place of an integral.
    evidence = (
        len(Y) / 2 * np.log(1e-3 * (1 - 1e-3))
        if len(mean) > 1
        else log_evidence(model, data[0][:1], *data, num_nodes=200)
    )
    assert trace <= evidence + 1e-9
    assert log > evidence + 0.005


def test_labels_of_gpflows_probit_would_exceed_the_evidence() -> None:
    """It keeps probabilities above 1e-3: where labels contradict the mean, their expectation rises
    with the variance."""
    data = np.r_[np.zeros(11), np.ones(16)][:, None], np.r_[np.zeros(11), np.ones(16)][:, None]
    kernel = gpflow.kernels.Constant(4.9963)
    mean = gpflow.mean_functions.Linear([[1.1574 - 4.2936]], [4.2936])
    q = JointQ(kernel, InducingPoints(np.zeros([1, 1])))
    with pytest.raises(ValueError, match=r"with Bernoulli\(invlink=inv_probit\); pass charge="):
        SVGP(kernel, Bernoulli(), q, charge="log")
    likelihood = Bernoulli()
    likelihood.log_concave = True
    model = untouched(SquaredExponential(4.9963, 1e6), likelihood, [0.0], charge="log")
    model.inducing_variable.Z.assign([[1e9]])
    model.mean_function = mean
    trace, log = bounds(model, data)
    evidence = log_evidence(model, np.array([[0.0]]), *data, num_nodes=200)
    assert trace < evidence < log - 1
    model.likelihood = Bernoulli(invlink=tf.sigmoid)
    trace, log = bounds(model, data)
    assert trace < log < log_evidence(model, np.array([[0.0]]), *data, num_nodes=200)


def test_what_is_not_known_to_be_log_concave() -> None:
    """By its class, its link, a member, or densities of its own; in every class of models."""

    class Shifted(Poisson):
        def _scalar_log_prob(self, X: Any, F: tf.Tensor, Y: tf.Tensor) -> tf.Tensor:
            return super()._scalar_log_prob(X, F + 1, Y)

    refused = [
        *(Beta(), Ordinal(np.array([0.0, 1.0])), HeteroskedasticTFPConditional(), Shifted()),
        *(likelihood(invlink=tf.math.softplus) for likelihood in (Gamma, Exponential)),
        *(Poisson(invlink=tf.square), SwitchedLikelihood([Gaussian(), StudentT()])),
    ]
    rng = np.random.default_rng(0)
    for number, likelihood in enumerate(refused):
        make, L = MAKES[number % 4], likelihood.latent_dim or 1
        make(rng, likelihood, L)
        with pytest.raises(ValueError, match="charge must be 'trace' for a likelihood that is not"):
            model = make(rng, likelihood, L)
            model.charge = "log"
            model.elbo((np.zeros([2, 1]), np.ones([2, 1])))
    with pytest.raises(ValueError, match="set likelihood.log_concave = True if the density is"):
        kernel = base_kernel(rng)
        HVGP(kernel, StudentT(), np.zeros([2, 1]), Negation(), charge="log")
