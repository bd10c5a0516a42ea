"""What holds of AdditiveSVGP and of OrthogonalSVGP alike."""

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.covariances import Kuf, Kuu

import interdomain as idm
from interdomain.models import HVGP, AdditiveSVGP, JointQ, OrthogonalSVGP
from interdomain.transforms import Rotation
from tests.conformance.helpers import assert_close, compiled, step_graph, value_and_gradients
from tests.models.svgp import cases, orthogonal_cases
from tests.posteriors.graph_ops import count_ops

from .cases import make_additive, make_data, points
from .orthogonal_cases import make_orthogonal

Make = Callable[..., gpflow.models.SVGP]


def additive(name: str, **options: object) -> AdditiveSVGP:
    return make_additive(cases.BY_NAME[name], **options)


def orthogonal(name: str, **options: object) -> OrthogonalSVGP:
    return make_orthogonal(orthogonal_cases.BY_NAME[name], **options)


@pytest.mark.parametrize(
    ("make", "name", "options"),
    [
        (additive, "complete", {}),
        (orthogonal, "activations-harmonics", {"variant": "solve"}),
        (orthogonal, "activations-harmonics", {"variant": "odvgp"}),
    ],
)
def test_initial_q_is_the_prior(make: Make, name: str, options: dict[str, str]) -> None:
    model = make(name, random_q=False, **options)
    assert abs(float(model.prior_kl())) < 1e-12
    X = points(5, seed=9)
    mean, cov = model.predict_f(X, full_cov=True)
    assert_close(mean, model.mean_function(X), rtol=1e-13)
    assert_close(cov[0], model.kernel(X), rtol=1e-12)


# Graphs of a step and of a prediction: one factorisation a batch, hardly more for more blocks.


@pytest.mark.parametrize(
    ("make", "name", "whiten", "q_diag", "expected"),
    [
        # Batches: those of either multiplicity; the dense ones; none.
        (additive, "complete", True, True, 2),
        (additive, "mixed", False, False, 1),
        (additive, "diagonal", False, False, 0),
        # C_vv and Kuu, which harmonics as a base do not need.
        (orthogonal, "harmonics-points", False, False, 1),
        (orthogonal, "points-points", True, False, 2),
    ],
)
def test_one_factorisation_per_batch(
    make: Make, name: str, whiten: bool, q_diag: bool, expected: int
) -> None:
    """For the elbo and its gradient together, with three latent GPs."""
    model = make(name, whiten=whiten, q_diag=q_diag, num_latent_gps=3)
    graph = step_graph(model, make_data(3))
    assert count_ops(graph, ("Cholesky",)) == expected
    assert count_ops(graph, ("CholeskyGrad", "MatrixInverse", "LogMatrixDeterminant")) == 0
    if name == "diagonal":
        assert count_ops(graph, ("TriangularSolve",)) == 0
    if name == "points-points":
        kl = tf.function(model.prior_kl, autograph=False).get_concrete_function()
        assert count_ops(kl, ("Cholesky", "TriangularSolve")) == 0


def graph_size(num_blocks: int) -> int:
    """The parts of a rotation of order 2 (T - 1): T of them, by one transformation."""
    rotation, noise = Rotation(2 * (num_blocks - 1)), gpflow.likelihoods.Gaussian()
    kernel, Z = gpflow.kernels.SquaredExponential(), points(num_blocks, 3)
    model = HVGP(kernel, noise, Z, rotation, whiten=False)
    assert len(model.q_mu) == num_blocks
    return count_ops(step_graph(model, make_data()), ("",))


def test_growth() -> None:
    """A block that is added has its parameters read and their gradients returned, no more."""
    assert graph_size(5) - graph_size(3) < 2 * 12


def test_cached_predictions_factorise_nothing() -> None:
    posterior = orthogonal("points-points", whiten=False).posterior()
    graph = compiled(lambda X: posterior.predict_f(X), [4, 3]).get_concrete_function()
    assert count_ops(graph, ("Cholesky", "TriangularSolve")) == 0


# One covariance for all latent GPs.

SHARED: list[tuple[Make, str, dict[str, object]]] = [
    (additive, "mixed", {"whiten": False}),
    (additive, "complete", {"whiten": False, "q_diag": True}),
    (orthogonal, "activations-harmonics", {"variant": "solve"}),
]


def pairs(model: gpflow.models.SVGP) -> list[gpflow.Parameter]:
    return [p for pair in model.variational_parameters for p in pair]


@pytest.mark.parametrize(("make", "name", "options"), SHARED)
def test_a_shared_covariance(make: Make, name: str, options: dict[str, object]) -> None:
    """As the same one for each: bound, gradients (that of the covariance being the sum), means,
    variances and covariances, cached and not."""
    shared = make(name, num_latent_gps=3, q_shared=True, **options)
    each = make(name, num_latent_gps=3, **options)
    for mine, other in zip(pairs(shared), pairs(each), strict=True):
        wide = tf.convert_to_tensor(mine)
        axis = 1 if len(mine.shape) == 2 else 0
        other.assign(tf.repeat(wide, 3, axis) if mine.shape != other.shape else wide)
    each.kernel, data = shared.kernel, make_data(3)
    variables = [[p.unconstrained_variable for p in pairs(model)] for model in (shared, each)]
    value, gradients = value_and_gradients(lambda: shared.elbo(data), variables[0])
    expected, slopes = value_and_gradients(lambda: each.elbo(data), variables[1])
    assert_close(value, expected, rtol=1e-12)
    for mine, other in zip(gradients, slopes, strict=True):
        if mine.shape != other.shape:
            other = np.sum(other, axis=int(mine.shape[0] == other.shape[0]), keepdims=True)
        assert_close(mine, other, rtol=1e-9)
    X = points(4, seed=3)
    for full_cov in (False, True):
        desired = each.predict_f(X, full_cov=full_cov)
        assert_close(shared.predict_f(X, full_cov=full_cov), desired, rtol=1e-10)
        assert_close(shared.posterior().predict_f(X, full_cov=full_cov), desired, rtol=1e-10)


@pytest.mark.parametrize("q_diag", [False, True])
def test_natural_gradients_of_a_shared_covariance(q_diag: bool) -> None:
    """Under one noise variance the covariances of all latent GPs are the same after every step."""
    case = {"num_latent_gps": 3, "random_q": False, "q_diag": q_diag}
    shared, each = (additive("stock", **case, q_shared=flag) for flag in (True, False))
    each.kernel, data = shared.kernel, make_data(3)
    for model in (shared, each):
        model.likelihood = gpflow.likelihoods.Gaussian(0.1)
        for module in (model.kernel, model.likelihood, model.inducing_variable):
            gpflow.set_trainable(module, False)
        step = gpflow.optimizers.NaturalGradient(0.3)
        model.num_data = len(data[0])
        idm.fit(model, data, steps=20, optimizer=step, batch_size=len(data[0]), progress=False)
    assert shared.q_sqrt[0].shape[1 if q_diag else 0] == 1
    assert_close(shared.elbo(data), each.elbo(data), rtol=1e-9)
    assert_close(shared.q_mu[0], each.q_mu[0], rtol=1e-6)


def test_what_cannot_share_a_covariance() -> None:
    kernels = [gpflow.kernels.Matern32(), gpflow.kernels.Matern52()]
    kernel = gpflow.kernels.SeparateIndependent(kernels)
    Z = gpflow.inducing_variables.InducingPoints(points(4))
    inducing_variable = gpflow.inducing_variables.SharedIndependentInducingVariables(Z)
    with pytest.raises(ValueError, match="q_shared must be False for latent GPs with priors of"):
        JointQ(kernel, inducing_variable, q_shared=True)
    with pytest.raises(ValueError, match=r"q_sqrt must have shape \(1, 4, 4\), found \(3, 4, 4\)"):
        JointQ(kernels[0], Z, num_latent_gps=3, q_shared=True, q_sqrt=np.stack([np.eye(4)] * 3))


# What the inducing variables leave of the prior, charged row by row.


def residual_variances(model: gpflow.models.SVGP, X: tf.Tensor) -> tf.Tensor:
    """``k(x, x) - k_u(x)^T Kuu^{-1} k_u(x)`` by a general solver."""
    u, kernel = model.inducing_variable, model.kernel
    if isinstance(model, OrthogonalSVGP):
        u = orthogonal_cases.Blocks(u, model.orthogonal_inducing_variable)
    columns, jitter = Kuf(u, kernel, X), gpflow.config.default_jitter()
    solved = tf.linalg.solve(Kuu(u, kernel, jitter=jitter), columns)
    return kernel(X, full_cov=False) - tf.reduce_sum(columns * solved, axis=0)


@pytest.mark.parametrize(("make", "name"), [(additive, "diagonal"), (orthogonal, "points-points")])
def test_the_tighter_bound(make: Make, name: str) -> None:
    """Under Gaussian noise it is the stock one with log(1 + r / s) / 2 in place of r / (2 s), for
    the residuals r of the exact kernel; gradients, too."""
    model, tighter = (make(name, num_latent_gps=2, charge=charge) for charge in ("trace", "log"))
    X, Y = make_data(2)

    def expected() -> tf.Tensor:
        noise = tighter.likelihood.variance
        left = tf.nn.relu(residual_variances(tighter, X))
        rows = left / (2 * noise) - tf.math.log(1 + left / noise) / 2
        scale = tighter.num_data / len(X)
        tighter.charge = "trace"
        bound = tighter.elbo((X, Y)) + 2 * scale * tf.reduce_sum(rows)
        tighter.charge = "log"
        return bound

    assert float(model.elbo((X, Y))) < float(tighter.elbo((X, Y)))
    variables = [*tighter.kernel.trainable_variables, *tighter.likelihood.trainable_variables]
    variables += [*tighter.inducing_variable.trainable_variables, *tighter.q.trainable_variables]
    value, gradients = value_and_gradients(lambda: tighter.elbo((X, Y)), variables)
    desired, slopes = value_and_gradients(expected, variables)
    assert_close(value, desired, rtol=1e-10)
    for mine, other in zip(gradients, slopes, strict=True):
        assert_close(mine, other, rtol=1e-7, atol=1e-9)


def test_the_tighter_bound_of_labels() -> None:
    """It lies between the stock one and the evidence, which two rows have by quadrature. The link
    is the user's, whose likelihood says that it is log-concave."""

    def steep(f: tf.Tensor) -> tf.Tensor:
        return tf.sigmoid(1.7 * f)

    X, Y = np.array([[0.0], [0.7]]), np.array([[1.0], [0.0]])
    kernel = gpflow.kernels.SquaredExponential(4.0)
    bounds = []
    for charge in ("trace", "log"):
        q = JointQ(kernel, gpflow.inducing_variables.InducingPoints(np.array([[0.2]])))
        likelihood = gpflow.likelihoods.Bernoulli(invlink=steep)
        likelihood.log_concave = True
        model = idm.models.SVGP(kernel, likelihood, q, charge=charge)
        for module in (model.kernel, model.inducing_variable):
            gpflow.set_trainable(module, False)
        bounds.append(idm.fit(model, (X, Y), steps=50, progress=False).elbo)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    pairs = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1)
    f = pairs @ np.linalg.cholesky(kernel(X).numpy()).T
    probabilities = steep(f).numpy()
    joint = probabilities[..., 0] * (1 - probabilities[..., 1])
    evidence = np.log(np.sum(np.outer(weights, weights) * joint) / (2 * np.pi))
    assert bounds[0] + 0.02 < bounds[1] < evidence
