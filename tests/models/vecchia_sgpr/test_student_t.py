"""Student-t noise against a dense variational solution, quadrature and SciPy's distributions."""

import copy
from typing import Any

import gpflow
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats
import tensorflow as tf

import interdomain as idm
from interdomain.models import StructuredSGPR, VecchiaSGPR
from interdomain.models.vecchia_sgpr import student_t
from tests.parts import finite_rank, with_waves

NUM_ROWS, SCALE, DEGREES = 30, 0.3, 3.5


def rows(num_outputs: int = 1, num_rows: int = NUM_ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(num_rows, 2))
    waves = np.sin(X @ rng.normal(size=(2, num_outputs)) * 4)
    Y = waves + 0.2 * rng.standard_t(2.5, size=(num_rows, 1)) * np.ones(num_outputs)
    Y[::7] += 3.0 * np.cos(np.arange(len(Y[::7])))[:, None]
    return X, Y


def local() -> gpflow.kernels.Kernel:
    return gpflow.kernels.Matern32(variance=0.8, lengthscales=[0.4, 0.7])


class Dense:
    """Coordinate ascent over q(f) and q(lambda) by dense algebra, for a covariance K of f.

    :ivar bound: From its definition: expected log densities and divergences.
    """

    def __init__(self, K: Any, Y: Any, given: Any, s: float = SCALE**2, df: float = DEGREES):
        number, outputs = Y.shape
        shape, rate = (df + outputs) / 2, np.full(number, (df + outputs) / 2)
        for _ in range(5_000):
            self.omega = shape / rate
            gain = np.linalg.solve(K + np.diag(s / (given * self.omega)), K).T
            self.mean, self.covariance = gain @ Y, K - gain @ K
            squares = np.square(Y - self.mean).sum(1) + outputs * np.diag(self.covariance)
            new = (df + given * squares / s) / 2
            done = np.allclose(new, rate, rtol=1e-13, atol=0)
            rate = new
            if done:
                break
        self.squares = given * squares
        log_of_lambda = scipy.special.psi(shape) - np.log(rate)
        logs = np.log(given / (2 * np.pi * s)) + log_of_lambda
        expected = np.sum(outputs * logs - given * squares * shape / rate / s) / 2
        _, root = np.linalg.slogdet(self.covariance)
        _, prior = np.linalg.slogdet(K)
        solved = np.linalg.solve(K, np.hstack([self.covariance, self.mean]))
        of_f = outputs * (np.trace(solved[:, :number]) - number + prior - root) / 2
        of_f += np.sum(self.mean * solved[:, number:]) / 2
        entropy = scipy.stats.gamma.entropy(shape, scale=1 / rate)
        half = df / 2
        log_prior = half * np.log(half) - scipy.special.gammaln(half) - half * shape / rate
        log_prior += (half - 1) * log_of_lambda
        self.bound = expected - of_f + np.sum(entropy + log_prior)


@pytest.mark.parametrize("num_outputs", [1, 3])
def test_the_bound_of_the_mixture(num_outputs: int) -> None:
    """At the dense solution, the evidence of the Gaussian model and the terms of the weights are
    the bound. The steps of scale and degrees raise it, and end where its gradient is zero."""
    X, Y = rows(num_outputs)
    K, given = np.asarray(local()(X)), np.random.default_rng(0).uniform(0.5, 2, NUM_ROWS)
    dense = Dense(K, Y, given)
    s, df = SCALE**2, DEGREES
    np.testing.assert_allclose(
        student_t.expected_weights(dense.squares, s, df, num_outputs), dense.omega, rtol=1e-10
    )
    normal = scipy.stats.multivariate_normal(cov=K + np.diag(s / (given * dense.omega)))
    of_weights = float(student_t.bound_of_weights(dense.omega, df, num_outputs))
    np.testing.assert_allclose(normal.logpdf(Y.T).sum() + of_weights, dense.bound, rtol=1e-9)
    for variance, degrees in ((s, df), (0.3 * s, 20.0)):
        densities = scipy.stats.multivariate_t(
            shape=variance * np.eye(num_outputs), df=degrees
        ).logpdf(np.sqrt(dense.squares / num_outputs)[:, None] * np.ones(num_outputs))
        np.testing.assert_allclose(
            student_t.profile(dense.squares, variance, degrees, num_outputs), np.sum(densities)
        )
    least = {"least_variance": 1e-6, "least_degrees": 2.0}
    new = student_t.scale_and_degrees(dense.squares, s, df, num_outputs, **least)
    best = student_t.profile(dense.squares, *new, num_outputs)
    assert Dense(K, Y, given, *new).bound > dense.bound + 1e-3
    for factors in np.random.default_rng(1).uniform(0.9, 1.1, size=(50, 2)):
        near = np.maximum(new * factors, [0, 2])
        assert student_t.profile(dense.squares, *near, num_outputs) <= best + 1e-9
    assert new[1] < 10
    for fixed, which in (((s, df), 0), ((s, df), 1)):
        trained = (which != 0, which != 1)
        found = student_t.scale_and_degrees(
            dense.squares, *fixed, num_outputs, **least, trained=trained
        )
        np.testing.assert_allclose(found[which], fixed[which], rtol=1e-12)


def test_the_evidence_of_two_rows() -> None:
    """The bound is below the evidence, by quadrature over both weights, and near it; so are the
    means of f."""
    K = np.array([[0.8, 0.5], [0.5, 0.8]])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    u = 12 * nodes - 8  # log lambda
    weights = 12 * weights * scipy.stats.gamma.pdf(np.exp(u), DEGREES / 2, scale=2 / DEGREES)
    weights *= np.exp(u)
    for Y, gap in (([[0.3], [0.1]], 0.2), ([[0.5], [-3.0]], 0.7)):
        noise = SCALE**2 * np.exp(-u)
        first, second = K[0, 0] + noise[:, None], K[1, 1] + noise[None]
        determinant = first * second - K[0, 1] ** 2
        (a,), (b,) = Y
        squares = (second * a**2 + first * b**2 - 2 * K[0, 1] * a * b) / determinant
        densities = np.exp(-squares / 2) / (2 * np.pi * np.sqrt(determinant))
        evidence = np.log(weights @ densities @ weights)
        means = K[0, 0] * (second * a - K[0, 1] * b) + K[0, 1] * (first * b - K[0, 1] * a)
        mean = weights @ (densities * means / determinant) @ weights / np.exp(evidence)
        dense = Dense(K, np.array(Y), np.ones(2))
        bound = dense.bound
        np.testing.assert_allclose(dense.mean[0], mean, atol=0.2)
        assert evidence - gap < bound < evidence, (Y, bound, evidence)


def test_densities() -> None:
    """Against SciPy's adaptive quadrature over f, where either of f and the noise is narrow."""
    cases = [
        (degrees, scale, variance, distance)
        for degrees in (2.05, 5.0, 400.0)
        for scale in (0.01, 1.0)
        for variance in (1e-3, 50.0)
        for distance in (0.0, 5.0, 300.0)
    ]
    for degrees, scale, variance, distance in cases:
        noise = scipy.stats.t(degrees, loc=distance, scale=scale)
        of_f = scipy.stats.norm(scale=np.sqrt(variance))
        ends = [-40, *range(-5, 6), 40]
        edges = {distance + k * scale for k in ends} | {k * np.sqrt(variance) for k in ends}
        grid = np.concatenate([np.linspace(min(edges), max(edges), 4_001), list(edges)])
        most = np.max(noise.logpdf(grid) + of_f.logpdf(grid))

        def joint(f: float, noise: Any = noise, of_f: Any = of_f, most: float = most) -> float:
            return float(np.exp(noise.logpdf(f) + of_f.logpdf(f) - most))

        expected = np.log(piecewise(joint, edges)) + most
        parts = (np.array([[part]]) for part in (0.0, variance, distance))
        mean, variances, Y = parts
        found = student_t.log_density(mean, variances, scale, degrees, Y)
        np.testing.assert_allclose(found, [expected], rtol=1e-8, atol=1e-8)
    # Several outputs share the weight.
    rng = np.random.default_rng(0)
    mean, variance, Y = rng.normal(size=(1, 3)), rng.uniform(size=(1, 3)), rng.normal(size=(1, 3))

    def given(weight: float) -> float:
        deviations = np.sqrt(variance + SCALE**2 / weight)
        densities = scipy.stats.norm.pdf(Y, mean, deviations)
        return float(scipy.stats.gamma.pdf(weight, 1.75, scale=1 / 1.75) * np.prod(densities))

    expected = np.log(piecewise(given, {0, 0.01, 0.1, 0.5, 1, 2, 5, 40}))
    found = student_t.log_density(mean, variance, SCALE, DEGREES, Y)
    np.testing.assert_allclose(found, [expected], rtol=1e-9)
    parameters = [tf.constant(value, tf.float64) for value in (0.1, 0.4, 0.3, 3.5, 0.9)]

    def density(*parts: tf.Tensor) -> tf.Tensor:
        mean, variance, scale, degrees, Y = parts
        return student_t.log_density([[mean]], [[variance]], scale, degrees, [[Y]])[0]

    theirs, mine = tf.test.compute_gradient(density, parameters, delta=1e-5)
    np.testing.assert_allclose(np.ravel(mine), np.ravel(theirs), rtol=1e-6, atol=1e-8)


def piecewise(function: Any, edges: Any) -> float:
    """SciPy's integral, in pieces between the edges."""
    ends = sorted(edges)
    options = {"epsabs": 1e-15, "epsrel": 1e-11, "limit": 200}
    pieces = zip(ends[:-1], ends[1:], strict=True)
    return sum(scipy.integrate.quad(function, *piece, **options)[0] for piece in pieces)


def test_quantiles() -> None:
    X, Y = rows()
    kernel, new = local(), np.array([[0.1, 0.2], [8.0, 8.0]])
    student = gpflow.likelihoods.StudentT(scale=0.02, df=2.5)
    model = gpflow.models.VGP((X, Y), kernel, student)
    levels = np.array([1e-4, 0.05, 0.5, 0.7, 0.95])
    found = idm.predict_quantiles(model, new, levels, progress=False)
    mean, variance = (np.asarray(part) for part in model.predict_f(new))
    assert found.shape == (2, 1, 5)
    for row in range(2):
        for level, quantile in zip(levels, found[row, 0] - mean[row, 0], strict=True):

            def below(u: float, quantile: Any = quantile, row: int = row) -> float:
                weight = np.exp(u)
                deviation = np.sqrt(variance[row, 0] + 0.02**2 / weight)
                density = scipy.stats.gamma.pdf(weight, 1.25, scale=0.8) * weight
                return float(density * scipy.stats.norm.cdf(quantile / deviation))

            total = piecewise(below, {-50, -30, -20, -12, -8, -5, -3, -2, -1, 0, 1, 2, 4})
            np.testing.assert_allclose(total, level, rtol=1e-8)
    # Gaussian noise, of one variance and as a function of a column.
    for noise in (gpflow.likelihoods.Gaussian(0.3), gpflow.likelihoods.Gaussian(_spread)):
        exact = gpflow.models.GPR((X, Y), kernel, likelihood=noise)
        mean, variance = (np.asarray(part) for part in exact.predict_y(new))
        expected = scipy.stats.norm.ppf(levels, mean[:, :, None], np.sqrt(variance)[:, :, None])
        found = idm.predict_quantiles(exact, new, levels, progress=False)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    wrong: list[tuple[Any, Any, str]] = [
        (model, [0.0, 0.5], "levels must be probabilities above 0 and below 1"),
        (model, "all", "levels must be"),
        (gpflow.models.VGP((X, Y > 0), kernel, gpflow.likelihoods.Bernoulli()), 0.5, "Bernoulli"),
    ]
    for each, values, message in wrong:
        with pytest.raises(ValueError, match=message):
            idm.predict_quantiles(each, new, values)


class _Spread(gpflow.functions.MeanFunction):  # type: ignore[misc]
    def __call__(self, X: Any) -> Any:
        return 0.1 + tf.square(X[:, :1])


_spread = _Spread()


NEW = np.random.default_rng(4).uniform(-1, 1, size=(6, 2))


def features() -> tuple[Any, Any]:
    return finite_rank(*with_waves(gpflow.kernels.Matern32(lengthscales=1.5), rows()[0], 12))


def make(block: Any = (), *, data: Any = None, **arguments: Any) -> VecchiaSGPR:
    defaults: dict[str, Any] = {
        "local_kernel": local(),
        "num_neighbours": NUM_ROWS,
        "likelihood": gpflow.likelihoods.StudentT(SCALE, DEGREES),
        "merge": "exact",
        "progress": False,
    }
    return VecchiaSGPR(rows() if data is None else data, *block, **(defaults | arguments))


@pytest.mark.parametrize("with_features", [False, True])
def test_with_all_rows_it_is_the_dense_solution(with_features: bool) -> None:
    """Several outputs, given weights, and rows at one place, which are merged."""
    X, Y = rows(2)
    X[-6:] = X[:6]
    given = np.random.default_rng(0).uniform(0.5, 2, NUM_ROWS)
    model = make(features() if with_features else (), data=(X, Y), noise_weights=given)
    kernel = model.kernel + model.local_kernel if with_features else model.local_kernel
    model.reweight(200, tolerance=1e-9)
    X, Y = model.arrays
    dense = Dense(np.asarray(kernel(X)) + 1e-10 * np.eye(NUM_ROWS), Y, model.noise_weights)
    np.testing.assert_allclose(model.expected_weights, dense.omega, rtol=1e-6)
    np.testing.assert_allclose(model.elbo(), dense.bound, rtol=1e-6)
    mean, variance = model.predict_f(X)
    np.testing.assert_allclose(mean, dense.mean, atol=1e-6)
    np.testing.assert_allclose(variance[:, 0], np.diag(dense.covariance), atol=1e-6)
    if not with_features:  # the bound has gradients to the noise, at fixed weights
        for name, parameter in (("s", model.likelihood.scale), ("df", model.likelihood.df)):
            with tf.GradientTape() as tape:
                value = model.elbo()
            slope = tape.gradient(value, parameter.unconstrained_variable)
            values = []
            for step in (1e-5, -1e-5):
                variable = parameter.unconstrained_variable
                variable.assign_add(step)
                values.append(float(model.elbo()))
                variable.assign_sub(step)
            np.testing.assert_allclose(slope, np.diff(values)[0] / -2e-5, rtol=1e-6, err_msg=name)


def test_predictions_copies_and_more_rows(tmp_path: Any) -> None:
    """The variance and the densities of y, in batches and compiled; weights go with copies and
    with checkpoints; rows that are added have weights by what was predicted for them."""
    X, Y = rows()
    model = make(data=(X[:25], Y[:25]), num_neighbours=5)
    model.reweight(3)
    mean, variance = (np.asarray(part) for part in model.predict_f(NEW))
    noise = SCALE**2 * DEGREES / (DEGREES - 2)
    np.testing.assert_allclose(model.predict_y(NEW)[1], variance + noise, rtol=1e-7)
    targets = mean + np.linspace(-3, 3, len(NEW))[:, None]
    densities = student_t.log_density(mean, variance, SCALE, DEGREES, targets)
    in_batches = idm.predict_in_batches(
        model, NEW, Y=targets, method="predict_log_density", batch_size=4, progress=False
    )
    for found in (model.predict_log_density((NEW, targets)), in_batches):
        np.testing.assert_allclose(found, densities, rtol=1e-9)
    value = float(model.elbo())
    tf.train.Checkpoint(model=model).write(str(tmp_path / "model"))
    fresh = make(data=(X[:25], Y[:25]), num_neighbours=5)
    for copied in (copy.deepcopy(model), gpflow.utilities.deepcopy(model)):
        np.testing.assert_allclose(copied.elbo(), value)
        copied.reweight(1)
        np.testing.assert_allclose(model.elbo(), value)
    compiled = tf.function(fresh.elbo, autograph=False)
    assert abs(float(compiled()) - value) > 0.1
    tf.train.Checkpoint(model=fresh).read(str(tmp_path / "model")).assert_consumed()
    np.testing.assert_allclose(fresh.elbo(), value)
    with pytest.raises(tf.errors.UnknownError, match="compile it again"):
        compiled()
    before = idm.predict_in_batches(model, NEW, progress=False)[0]
    model.weigh(np.full(25, 0.5))
    assert np.max(np.abs(idm.predict_in_batches(model, NEW, progress=False)[0] - before)) > 1e-3
    mean, variance = model.predict_f(X[25:])
    squares = np.square(Y[25:] - mean) + variance
    model.extend((X[25:], Y[25:]))
    expected = student_t.expected_weights(squares[:, 0], SCALE**2, DEGREES, 1)
    np.testing.assert_allclose(model.expected_weights[25:], expected)
    assert len(model.ordered.noise_weights) == NUM_ROWS and np.isfinite(model.elbo())


def test_fit() -> None:
    """Heavy tails of a smooth function: intervals and degrees of freedom are near the true ones,
    far outliers do not count, and what is not trainable stays."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 2))
    f = np.sin(3 * X[:, :1]) + X[:, 1:]
    Y = f + 0.2 * rng.standard_t(3, size=f.shape)
    Y[:400:50] += 1_000.0
    for block, options in (((), {}), (features(), {"steps": 1, "options": {"parts": "both"}})):
        likelihood = gpflow.likelihoods.StudentT()
        model = make(block, data=(X[:400], Y[:400]), num_neighbours=8, likelihood=likelihood)
        result = idm.fit(model, progress=False, **options)
        assert np.sqrt(np.mean(np.square(model.predict_f(X[400:])[0] - f[400:]))) < 0.1
        ends = idm.predict_quantiles(model, X[400:], [0.05, 0.95], progress=False)
        inside = (ends[:, 0, 0] < Y[400:, 0]) & (Y[400:, 0] < ends[:, 0, 1])
        assert 0.85 < np.mean(inside) < 0.95
        assert 0.1 < likelihood.scale.numpy() < 0.3
        np.testing.assert_allclose(result.elbo, model.elbo())
    gpflow.set_trainable(likelihood.df, False)
    likelihood.df.assign(DEGREES)
    idm.fit(model, steps=1, progress=False, options={"parts": "neighbours"})
    np.testing.assert_allclose(likelihood.df, DEGREES, rtol=1e-6)


def test_bad_input() -> None:
    X, Y = rows()
    student, spread = gpflow.likelihoods.StudentT, _spread
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"likelihood": student(df=2.0)}, "df must be above 2.01"),
        ({"likelihood": student(scale=spread)}, "a scale that depends on x"),
        ({"likelihood": student(), "noise_variance": 1.0}, "noise_variance: found 1.0"),
        ({"likelihood": student(), "num_neighbours": 0}, "num_neighbours: found 0"),
        ({"likelihood": gpflow.likelihoods.Gaussian(spread)}, "Gaussian of one noise variance"),
    ]
    for arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            make(**arguments)
    with pytest.raises(ValueError, match="found StudentT; pass it to interdomain.models.DualSVGP"):
        StructuredSGPR((X, Y), *features(), likelihood=student())
    with pytest.raises(ValueError, match="must be a StudentT for weights of rows, found Gaussian"):
        make(likelihood=None).reweight()
    # Targets that repeat exactly, and no noise.
    X, Y = np.repeat(X, 5, axis=0), np.repeat(np.sign(Y), 5, axis=0)
    for merge in ("off", "exact"):
        model = make(data=(X, Y), num_neighbours=8, merge=merge, likelihood=student())
        with pytest.raises(ValueError, match="scale of the Student-t noise fell"):
            idm.fit(model, progress=False)
