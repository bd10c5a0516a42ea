"""VecchiaSGPR against dense linear algebra, and against the exact GP in the limit."""

import copy
import functools
from typing import Any

import gpflow
import mpmath
import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

import interdomain as idm
from interdomain.models import StructuredSGPR, VecchiaSGPR
from tests.parts import finite_rank, with_harmonics, with_waves

NUM_ROWS, NUM_NEIGHBOURS, NOISE = 46, 5, 0.07
Block = tuple[Any, Any] | tuple[()]


def rows(num_outputs: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(NUM_ROWS, 2))
    waves = np.sin(X @ rng.normal(size=(2, num_outputs)) * 5)
    return X, waves + 0.2 * rng.normal(size=waves.shape)


NEW = np.random.default_rng(4).uniform(-1, 1, size=(6, 2))


def local() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32(variance=0.8, lengthscales=[0.4, 0.7])


def harmonics() -> Block:
    kernel = idm.kernels.SphericalMatern52(weight_variances=np.ones(2), variance=0.7)
    return finite_rank(*with_harmonics(kernel, 3))


def waves() -> Block:
    base = gpflow.kernels.Matern32(lengthscales=[1.0, 1.5])
    return finite_rank(*with_waves(base, rows()[0], 12, margin=1.0))


def effects() -> Block:
    kernel = idm.tables.Additive.from_data(rows()[0])
    return finite_rank(kernel, idm.tables.AdditiveFeatures.for_kernel(kernel, 8))


def points() -> Block:
    kernel = gpflow.kernels.SquaredExponential(lengthscales=0.9)
    return finite_rank(kernel, gpflow.inducing_variables.InducingPoints(NEW))


FAMILIES: dict[str, Any] = {f.__name__: f for f in (harmonics, waves, effects, points)}
FAMILIES["nothing"] = tuple


def make(block: Block = (), *, data: Any = None, **arguments: Any) -> VecchiaSGPR:
    defaults: dict[str, Any] = {
        "local_kernel": local(),
        "num_neighbours": NUM_NEIGHBOURS,
        "noise_variance": NOISE,
        "batch_size": 17,
        "progress": False,
    }
    return VecchiaSGPR(rows() if data is None else data, *block, **(defaults | arguments))


def value_and_gradients(function: Any, variables: Any) -> tuple[float, list[Any]]:
    with tf.GradientTape() as tape:
        value = function()
    return float(value), [np.asarray(g) for g in tape.gradient(value, variables)]


@pytest.mark.parametrize("family", FAMILIES)
def test_with_all_rows_it_is_the_exact_gp(family: str) -> None:
    """Evidence, its gradients, predictions, joint covariances and the gradients with respect to
    the places of predictions."""
    block, mean = FAMILIES[family](), gpflow.mean_functions.Constant([0.2, -0.1])
    model = make(block, num_neighbours=NUM_ROWS, mean_function=mean)
    kernel = model.local_kernel + block[0] if block else model.local_kernel
    exact = gpflow.models.GPR(rows(), kernel, mean_function=mean, likelihood=model.likelihood)
    variables = exact.trainable_variables
    value, gradients = value_and_gradients(model.elbo, variables)
    expected, slopes = value_and_gradients(exact.log_marginal_likelihood, variables)
    # The prior of points has the jitter of Kuu in it, once here and once in the kernel.
    tolerance = 1e-5 if family == "points" else 1e-9
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    for gradient, slope in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(gradient, slope, rtol=100 * tolerance, atol=100 * tolerance)
    X = tf.constant(NEW)
    for full_cov in (False, True):
        for mine, theirs in zip(
            model.predict_f(X, full_cov=full_cov),
            exact.predict_f(X, full_cov=full_cov),
            strict=True,
        ):
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=10 * tolerance)
    if family in ("nothing", "harmonics"):
        slopes_of = []
        for each in (model, exact):
            with tf.GradientTape() as tape:
                tape.watch(X)
                total = tf.reduce_sum(tf.sin(tf.stack(each.predict_f(X))))
            slopes_of.append(tape.gradient(total, X))
        np.testing.assert_allclose(*slopes_of, rtol=1e-8, atol=1e-9)


def dense_whitening(model: VecchiaSGPR, X: np.ndarray) -> np.ndarray:
    """The rows of the inverse root of Vecchia's covariance, by a loop: ``[N, N]``."""
    kernel, number = model.local_kernel, model.num_neighbours
    K = np.asarray(kernel(X)) + NOISE * np.eye(len(X))
    distances = np.linalg.norm((X[:, None] - X) / np.asarray(kernel.lengthscales), axis=-1)
    W = np.zeros_like(K)
    for row in range(len(X)):
        near = np.argsort(distances[row, :row])[:number]
        weights = np.linalg.solve(K[np.ix_(near, near)], K[near, row])
        W[row, near], W[row, row] = -weights, 1
        W[row] /= np.sqrt(K[row, row] - weights @ K[near, row])
    return W


@pytest.mark.parametrize("family", ["nothing", "harmonics", "waves"])
def test_sums_evidence_and_predictions_are_those_of_dense_algebra(family: str) -> None:
    block = FAMILIES[family]()
    model = make(block, num_prediction_neighbours=9)
    X, Y = model.arrays  # in their order
    W = dense_whitening(model, X)
    features = np.asarray(gpflow.covariances.Kuf(model.inducing_variable, model.kernel, X))
    psi, sums = W @ features.T, model.statistics.sums
    np.testing.assert_allclose(sums["gram"], psi.T @ psi, atol=1e-9)
    np.testing.assert_allclose(sums["products"][:, :2], psi.T @ W @ Y, atol=1e-9)
    covariance = np.linalg.inv(W.T @ W)
    prior = np.asarray(model.kernel(X))
    normal = scipy.stats.multivariate_normal(cov=covariance + prior)
    np.testing.assert_allclose(model.elbo(), normal.logpdf(Y.T).sum(), rtol=1e-9)
    # Predictions: the features' weights are a posteriori those of the dense model.
    total = np.linalg.inv(covariance + prior)
    kernel, K = model.local_kernel, np.asarray(model.local_kernel(X)) + NOISE * np.eye(NUM_ROWS)
    joint = np.vstack([X, NEW])
    prior, local_prior = np.asarray(model.kernel(joint)), np.asarray(kernel(joint))
    distances = np.linalg.norm((NEW[:, None] - X) / np.asarray(kernel.lengthscales), axis=-1)
    A = np.zeros([len(NEW), NUM_ROWS])
    near_new = np.argsort(distances, axis=1)[:, : model.num_prediction_neighbours]
    for row, near in enumerate(near_new):
        A[row, near] = np.linalg.solve(K[np.ix_(near, near)], local_prior[near, NUM_ROWS + row])
    errors = np.hstack([-A, np.eye(len(NEW))])  # of what neighbours say, from all rows and new ones
    mean = A @ Y + errors @ prior[:, :NUM_ROWS] @ total @ Y
    noisy = local_prior + NOISE * np.diag(np.arange(len(joint)) < NUM_ROWS)
    feature_cov = prior - prior[:, :NUM_ROWS] @ total @ prior[:NUM_ROWS]
    expected = errors @ (noisy + feature_cov) @ errors.T
    for full_cov, covariances in ((True, expected), (False, np.diag(expected)[:, None])):
        found_mean, found_cov = model.predict_f(NEW, full_cov=full_cov)
        np.testing.assert_allclose(found_mean, mean, atol=1e-9)
        np.testing.assert_allclose(
            found_cov, np.broadcast_to(covariances, found_cov.shape), atol=1e-9
        )
    in_batches = idm.predict_in_batches(model, NEW, method="predict_y", batch_size=4)
    np.testing.assert_allclose(in_batches[0], mean, atol=1e-9)
    np.testing.assert_allclose(in_batches[1][:, 0], np.diag(expected) + NOISE, atol=1e-9)


def test_the_divergence_from_the_exact_gp_falls() -> None:
    """``KL[p || p_Vecchia]`` is half the difference of their log determinants."""
    model = make()
    K = np.asarray(model.local_kernel(model.arrays[0])) + NOISE * np.eye(NUM_ROWS)
    exact, divergences = np.linalg.slogdet(2 * np.pi * K)[1], []
    for number in (1, 2, 4, 8, 16, NUM_ROWS):
        model.search(number)
        divergences.append((float(model.statistics.sums["log_variances"]) - exact) / 2)
    assert np.all(np.diff(divergences) < 0)
    np.testing.assert_allclose(divergences[-1], 0, atol=1e-9)


def test_without_neighbours_it_is_structured_sgpr() -> None:
    block = harmonics()
    model, usual = (
        make(block, num_neighbours=0),
        StructuredSGPR(rows(), *block, noise_variance=NOISE),
    )
    np.testing.assert_allclose(model.elbo(), usual.elbo(), rtol=1e-12)
    np.testing.assert_allclose(model.predict_f(NEW), usual.predict_f(NEW), rtol=1e-10)


def test_rows_can_be_added() -> None:
    """Sums of the others stay; it is the model of all rows in that order."""
    X, Y = rows()
    for number in (NUM_NEIGHBOURS, NUM_ROWS):
        model = make(harmonics(), data=(X[:30], Y[:30]), num_neighbours=number)
        model.extend((X[30:], Y[30:]))
        W = dense_whitening(model, model.arrays[0])
        covariance = np.linalg.inv(W.T @ W) + np.asarray(model.kernel(model.arrays[0]))
        normal = scipy.stats.multivariate_normal(cov=covariance)
        np.testing.assert_allclose(model.elbo(), normal.logpdf(model.arrays[1].T).sum(), rtol=1e-9)
    exact = gpflow.models.GPR(
        rows(), model.kernel + model.local_kernel, likelihood=model.likelihood
    )
    np.testing.assert_allclose(model.predict_f(NEW)[1], exact.predict_f(NEW)[1], rtol=1e-8)
    with pytest.raises(ValueError, match="columns"):
        model.extend((np.ones([3, 3]), np.ones([3, 2])))


def test_on_the_globe() -> None:
    """Neighbours are over the date line and the pole; distances are chords."""
    rng = np.random.default_rng(0)
    X = np.stack([rng.uniform(60, 90, 50), rng.uniform(-180, 180, 50)], axis=1)
    Y = np.sin(X[:, :1])
    kernel = gpflow.kernels.Matern32(lengthscales=0.2)
    model = make(data=(X, Y), local_kernel=kernel, num_neighbours=50, local_inputs="degrees")
    exact = gpflow.models.GPR((idm.sphere.unit_vectors(X), Y), kernel, noise_variance=NOISE)
    np.testing.assert_allclose(model.elbo(), exact.log_marginal_likelihood(), rtol=1e-10)
    model.search(3)
    new = np.array([[89.9, 10.0], [70.0, 179.99], [70.0, -179.99]])
    unit, inside = idm.sphere.unit_vectors(new).numpy(), idm.sphere.unit_vectors(model.arrays[0])
    angles = np.arccos(np.clip(unit @ inside.numpy().T, -1, 1))
    near = np.argsort(angles, axis=1)[:, : model.num_prediction_neighbours]
    for row in range(3):
        data = inside.numpy()[near[row]], model.arrays[1][near[row]]
        few = gpflow.models.GPR(data, kernel, noise_variance=NOISE)
        here = slice(row, row + 1)
        np.testing.assert_allclose(model.predict_f(new[here]), few.predict_f(unit[here]), rtol=1e-8)


def test_ranks_of_draws_from_the_model_are_uniform() -> None:
    """Simulation-based calibration: 200 draws of f and y, each an output of one model."""
    block, draws, places = harmonics(), 200, 5
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(80 + places, 2))
    K = np.asarray(local()(X)) + np.asarray(block[0](X))
    F = np.linalg.cholesky(K + 1e-10 * np.eye(len(X))) @ rng.normal(size=(len(X), draws))
    Y = F + np.sqrt(NOISE) * rng.normal(size=F.shape)
    model = make(block, data=(X[places:], Y[places:]), num_neighbours=15)
    mean, variance = model.predict_f(X[:places])
    ranks = scipy.stats.norm.cdf((F[:places] - mean) / np.sqrt(variance))
    for place_ranks in ranks:
        assert scipy.stats.kstest(place_ranks, "uniform").pvalue > 0.01


def test_copies_float32_and_files(tmp_path: Any) -> None:
    X, Y = rows(1)
    expected = make(data=(X, Y)).predict_f(NEW)
    np.save(tmp_path / "X.npy", X)
    mapped = make(data=(np.load(tmp_path / "X.npy", mmap_mode="r"), Y))
    for model in (mapped, copy.deepcopy(mapped), gpflow.utilities.deepcopy(mapped)):
        np.testing.assert_array_equal(model.predict_f(NEW), expected)
    copied = gpflow.utilities.deepcopy(mapped)
    copied.local_kernel.variance.assign(2.0)
    assert abs(float(copied.elbo() - mapped.elbo())) > 0.1
    with gpflow.config.as_context(gpflow.config.Config(float=np.float32)):
        single = make(harmonics(), data=(X.astype(np.float32), Y.astype(np.float32)))
        assert single.predict_f(NEW.astype(np.float32))[0].dtype == tf.float32
        value = float(single.elbo())
    np.testing.assert_allclose(value, make(harmonics(), data=(X, Y)).elbo(), rtol=1e-4)


def test_a_search_is_noticed_by_what_was_compiled() -> None:
    """Sums of other neighbours are never taken for those that were compiled."""
    model = make()
    for trainable in (True, False):
        gpflow.set_trainable([model.local_kernel, model.likelihood], trainable)
        value = tf.function(model.elbo)
        np.testing.assert_allclose(value(), model.elbo())
        model.search()
        with pytest.raises(tf.errors.UnknownError, match="compile it again"):
            value()


@pytest.mark.parametrize("family", ["points", "harmonics", "nothing"])
def test_compiled_for_any_rows(family: str) -> None:
    model = make(FAMILIES[family]())
    expected = model.predict_f(NEW)
    for shape in ([None, None], [None, 2], None):
        spec = [tf.TensorSpec(shape, tf.float64)]
        compiled = tf.function(model.predict_f, input_signature=spec, autograph=False)
        for mine, eager in zip(compiled(NEW), expected, strict=True):
            np.testing.assert_allclose(mine, eager, rtol=1e-9, atol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[3,3\]"):
        compiled(np.ones([3, 3]))


def test_new_rows_that_the_model_cannot_take() -> None:
    model = make(harmonics())
    data = 80 * rows()[0], rows()[1]
    globe = make(data=data, local_inputs="degrees", local_kernel=gpflow.kernels.Matern32())
    wrong: list[tuple[VecchiaSGPR, Any, str]] = [
        (model, np.ones([4, 3]), "have 2 columns, found 3 columns"),
        (model, np.ones([4, 1]), "have 2 columns, found 1 columns"),
        (model, NEW * 1e152, "below 1e[+]150 lengthscales"),
        (model, NEW * 1e160, "so that squares of distances are finite"),
        (globe, np.array([[95.0, 3.0]]), "from -90 to 90"),
    ]
    for each, X, message in wrong:
        for predict in (
            each.predict_f,
            each.predict_y,
            each.posterior().predict_f,
            lambda X, model=each: idm.predict_in_batches(model, X),
            lambda X, model=each: idm.predict_in_batches(model.posterior(), X),
            lambda X, model=each: model.extend((X, np.ones([len(X), 2]))),
        ):
            with pytest.raises(ValueError, match="columns" if "columns" in message else message):
                predict(X)
    with pytest.raises(ValueError, match="found 3 columns"):
        tf.function(model.predict_f, autograph=False)(tf.ones([3, 3], tf.float64))
    assert model.num_data == NUM_ROWS
    np.testing.assert_allclose(model.elbo(), make(harmonics()).elbo())


def test_noise_below_the_rounding_of_the_variance() -> None:
    """The evidence is that of 60 digits if the noise is 1e-13 of the variance, and finite below."""
    X = np.linspace(-1, 1, 30)[:, None]
    for variance, lengthscale in ((3.6e4, 1e3), (3.6e6, 1e4), (2.7e8, 7e4), (1e12, 1e6)):
        kernel = gpflow.kernels.Matern32(variance, lengthscale)
        model = VecchiaSGPR((X, X), local_kernel=kernel, noise_variance=3.6e-7, merge="off")
        elbo = float(model.elbo())
        if variance < 1e8:
            with mpmath.workdps(60):
                np.testing.assert_allclose(
                    elbo, exact_evidence(X, variance, lengthscale), atol=0.02
                )
        assert np.isfinite(elbo)


def exact_evidence(X: np.ndarray, variance: float, lengthscale: float) -> float:
    """The log density of Y = X under a Matern32, with a noise variance of 3.6e-7."""
    y = mpmath.matrix(X[:, 0].tolist())
    distances = [[mpmath.sqrt(3) * abs(a - b) / lengthscale for b in y] for a in y]
    K = mpmath.matrix([[variance * (1 + r) * mpmath.exp(-r) for r in row] for row in distances])
    root = mpmath.cholesky(K + mpmath.mpf(3.6e-7) * mpmath.eye(len(y)))
    white = mpmath.lu_solve(root, y)
    logarithms = sum(mpmath.log(2 * mpmath.pi * root[k, k] ** 2) for k in range(len(y)))
    return float(-(logarithms + mpmath.fdot(white, white)) / 2)


def test_the_smallest_noise_variance() -> None:
    """The lower bound itself is taken, less is refused; also by a StructuredSGPR. Rows that
    are repeated almost without noise, and fewer rows than neighbours, give numbers."""
    X, Y = rows()
    model = make(data=(np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0)), noise_variance=1.1e-6)
    assert np.isfinite(model.elbo())
    assert np.all(np.isfinite(make(data=(X[:3], Y[:3])).predict_f(NEW)))
    for kind in (make, functools.partial(StructuredSGPR, rows(), *harmonics())):
        assert np.isfinite(kind(noise_variance=1e-6).elbo())
        for value in (0.0, -1.0, np.nan, np.inf, 1e-12):
            with pytest.raises(ValueError, match="noise_variance must be finite and .* or more"):
                kind(noise_variance=value)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "kernel alone": ({"block": harmonics()[:1]}, "inducing_variable must be given"),
    "full prior": ({"block": (harmonics()[0].kernel, harmonics()[1])}, "kernel must be of finite"),
    "statistics": ({"data": tf.data.Dataset.from_tensors(rows())}, "data must be arrays"),
    "product": ({"local_kernel": local() * local()}, "local_kernel must be a stationary"),
    "three": ({"local_kernel": gpflow.kernels.RBF(lengthscales=np.ones(3))}, "lengthscale, or 2"),
    "latitude": ({"local_inputs": "degrees", "data": (100 * rows()[0], rows()[1])}, "from -90"),
    "far": ({"data": (rows()[0] * 1e152, rows()[1])}, "below 1e[+]150 lengthscales"),
    "squares": ({"data": (rows()[0] * 1e160, rows()[1])}, "squares of distances are finite"),
    "no parts": ({"num_neighbours": 0}, "num_neighbours must be an integer of 1 or more, found 0"),
    "not finite": ({"data": (rows()[0] * np.nan, rows()[1])}, "NaN"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    arguments, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        make(**({"local_kernel": gpflow.kernels.Matern32()} | arguments))


def test_what_it_cannot_do_is_said() -> None:
    model = make(harmonics())
    assert not any(hasattr(model, name) for name in ("accumulate", "residuals", "to_svgp"))
    for call in (
        lambda: idm.save(model, "nowhere"),
        lambda: idm.sample_functions(model, 2),
    ):
        with pytest.raises(ValueError, match="a VecchiaSGPR|model must be an SVGP"):
            call()
