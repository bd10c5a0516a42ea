"""Training: which parts are kept, what is found, and what is refused."""

import copy
import pickle
import warnings
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.kernels import Matern32, Matern52

import interdomain as idm
from interdomain.models import VecchiaSGPR
from interdomain.models.vecchia_sgpr.local_kernel import conditional_weights
from interdomain.models.vecchia_sgpr.samples import warn_of_rows
from tests.parts import finite_rank, with_waves

NUM_ROWS = 700


def rows(*, smooth: float, rough: float, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """A wave over all of a square, and a rough function."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(NUM_ROWS, 2))
    kernel = Matern32(lengthscales=0.15)
    root = np.linalg.cholesky(np.asarray(kernel(X)) + 1e-8 * np.eye(NUM_ROWS))
    f = smooth * np.sin(2 * X[:, :1] + X[:, 1:]) + rough * root @ rng.normal(size=(NUM_ROWS, 1))
    return X, f + noise * rng.normal(size=f.shape)


def make(data: Any) -> VecchiaSGPR:
    block = finite_rank(*with_waves(Matern52(), data[0], 40, margin=2.0))
    return alone(data, *block, local_kernel=Matern32(lengthscales=np.ones(2)), noise_variance=0.1)


def alone(data: Any, *block: Any, **arguments: Any) -> VecchiaSGPR:
    """Neighbours without features, unless there is a block of these."""
    defaults = {"local_kernel": Matern32(), "num_neighbours": 8, "progress": False}
    return VecchiaSGPR(data, *block, **(defaults | arguments))


@pytest.mark.parametrize(
    ("smooth", "rough", "kept"), [(1.0, 0.0, {"features"}), (3.0, 0.3, {"both"})]
)
def test_the_evidence_decides(smooth: float, rough: float, kept: set[str]) -> None:
    model = make(rows(smooth=smooth, rough=rough))
    result = idm.fit(model, steps=2, progress=False)
    parts = result.parts
    assert parts is not None and parts.kept in kept and str(parts).count("\n") == 1
    assert set(parts.evidence) == {"features", "neighbours", "both"}
    np.testing.assert_allclose(model.elbo(), result.elbo, rtol=1e-9)
    np.testing.assert_allclose(result.elbo / NUM_ROWS, parts.evidence[parts.kept], atol=0.1)
    np.testing.assert_allclose(sum(parts.shares.values()), 1)
    assert list(parts.shares) == ["features", "neighbours", "noise", "unexplained"]
    noise = model.likelihood.variance / np.mean(np.square(model.arrays[1]))
    np.testing.assert_allclose(parts.shares["noise"], noise, rtol=0.1)
    assert model.parts == parts.kept and model.num_neighbours == 8
    if parts.kept == "both":
        kernel = model.local_kernel
        np.testing.assert_allclose(model.likelihood.variance, 0.0025, rtol=0.4)
        np.testing.assert_allclose(kernel.variance, 0.09, rtol=0.8)
        np.testing.assert_allclose(kernel.lengthscales, [0.15, 0.15], rtol=0.4)
        assert parts.shares["features"] > 0.9


def test_only_one_part() -> None:
    """Neighbours alone, at a rate of evidence near that of the exact GP; and what was asked for."""
    X, Y = rows(smooth=0.0, rough=1.0)
    result = idm.fit(alone((X, Y), num_neighbours=12), progress=False)
    assert result.converged and result.parts is not None and result.parts.kept == "neighbours"
    exact = gpflow.models.GPR((X, Y), Matern32(lengthscales=0.15), None, 0.0025)
    best = float(exact.log_marginal_likelihood()) / NUM_ROWS
    np.testing.assert_allclose(result.elbo / NUM_ROWS, best, atol=0.05)
    for parts in ("features", "neighbours"):
        model = make((X, Y))
        fitted = idm.fit(model, steps=1, progress=False, options={"parts": parts}).parts
        assert fitted is not None and set(fitted.evidence) == {parts}
        has_features = parts == "features"
        assert (model.has_features, model.has_neighbours) == (has_features, not has_features)


def test_a_fit_keeps_what_was_built(tmp_path: Any) -> None:
    """A fit selects parts, whose predictions are those of a model of these alone, also in copies
    and files. A second fit tries all of them, from the parameters of the first."""
    data = rows(smooth=1.0, rough=0.3)
    X, model = data[0][:7], make(data)
    block = (model.kernel, model.inducing_variable)
    built = (*block, model.local_kernel, model.num_neighbours)
    evidence = dict[str, float]()
    for parts, other in (("features", "neighbours"), ("neighbours", "features")):
        result = idm.fit(model, steps=1, progress=False, options={"parts": parts})
        evidence[parts] = result.elbo / NUM_ROWS
        assert (*block, model.local_kernel, model.num_neighbours) == built
        assert model.parts == parts and all(p.trainable for p in model.parameters)
        shared = {"local_kernel": model.local_kernel, "likelihood": model.likelihood}
        if parts == "features":
            part = alone(data, *block, num_neighbours=0, **shared)
        else:
            part = alone(data, **shared)
        tf.train.Checkpoint(model=model).write(str(tmp_path / parts))
        restored = make(data)
        restored.use(other)
        restored.elbo()
        tf.train.Checkpoint(model=restored).read(str(tmp_path / parts)).expect_partial()
        restored.search()
        pickled = pickle.loads(pickle.dumps(model))
        for each in (model, restored, copy.deepcopy(model), pickled):
            assert each.parts == parts
            np.testing.assert_allclose(each.elbo(), part.elbo(), rtol=1e-10)
            for mine, expected in zip(each.predict_f(X), part.predict_f(X), strict=True):
                np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-10)
        if parts == "features":
            assert idm.sample_functions(model, 2)(X).shape == (2, 7, 1)
            idm.save(model, tmp_path / "saved")
        else:
            with pytest.raises(ValueError, match="looks up neighbours"):
                idm.save(model, tmp_path / "saved")
        for each in (pickled, part):
            each.extend((X, data[1][:7]))
        np.testing.assert_allclose(pickled.elbo(), part.elbo(), rtol=1e-10)
    names = set(gpflow.utilities.parameter_dict(model))
    assert names == set(gpflow.utilities.parameter_dict(make(data)))
    fitted = idm.fit(model, steps=1, progress=False).parts
    assert fitted is not None and set(fitted.evidence) == {"features", "neighbours", "both"}
    assert model.parts == fitted.kept == "both"
    assert all(fitted.evidence[parts] > evidence[parts] - 0.01 for parts in evidence)


def test_an_error_leaves_the_parts_as_they_were() -> None:
    model = make(rows(smooth=1.0, rough=0.3))

    def stop(*_: Any) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        idm.fit(model, progress=False, options={"parts": "neighbours"}, callbacks=[stop])
    assert model.parts == "both"
    with pytest.raises(ValueError, match="parts must be 'neighbours', found 'both'"):
        alone(model.arrays).use("both")


def test_targets_without_variation() -> None:
    """Zero residuals give the mean function with the smallest noise, whatever the parts."""
    X = rows(smooth=0.0, rough=0.0)[0][:150]
    mean, Y = gpflow.mean_functions.Constant(5.0), np.full([len(X), 1], 5.0)
    fives = alone((X, Y), num_neighbours=5, mean_function=mean)
    for level, model in ((5.0, fives), (0.0, make((X, np.zeros([len(X), 1]))))):
        parts = idm.fit(model, steps=1, progress=False).parts
        assert parts is not None and not np.any(np.isnan(list(parts.shares.values())))
        mean, variance = model.predict_y(X[:5] + 0.01)
        np.testing.assert_allclose(mean, level, atol=1e-3)
        np.testing.assert_allclose(np.sqrt(variance), 1e-3, rtol=0.1)


def test_far_from_the_mean_function() -> None:
    """A constant mean function gives the fit of the targets without it; zero is refused."""
    X, Y = rows(smooth=1.0, rough=0.0)
    constant, far = gpflow.mean_functions.Constant(1e8), (X, Y + 1e8)
    gpflow.set_trainable(constant, False)
    model, without, refused = alone(far, mean_function=constant), alone((X, Y)), alone(far)
    for each in (model, without):
        idm.fit(each, steps=1, progress=False)
    mean = idm.predict_in_batches(model, X)[0] - 1e8
    np.testing.assert_allclose(mean, without.predict_f(X)[0], atol=0.01)
    message = "away from the mean function, more than 1,000 times"
    with pytest.warns(UserWarning, match="Y is up to"), pytest.raises(ValueError, match=message):
        idm.fit(refused, steps=1, progress=False)


def test_all_types_of_rows() -> None:
    """X of integers, and a model in float32, are trained as in float64."""
    X, Y = rows(smooth=1.0, rough=0.3)
    X = np.round(X[:300] * 100 + 120)
    evidence = dict[str, float]()
    for name in ("float64", "uint8", "all"):
        config = gpflow.config.Config(float=np.float32 if name == "all" else np.float64)
        with gpflow.config.as_context(config):
            data = X.astype("float32" if name == "all" else name), Y[:300]
            model = alone(data, local_kernel=Matern32(lengthscales=40.0), num_neighbours=5)
            evidence[name] = idm.fit(model, steps=1, progress=False).elbo
            assert model.predict_f(data[0][:3])[0].dtype == gpflow.default_float()
    np.testing.assert_allclose(list(evidence.values()), evidence["float64"], rtol=1e-2)


def test_warnings_before_training() -> None:
    X, Y = rows(smooth=1.0, rough=0.3)
    places = np.repeat(X[:20], 20, axis=0)
    degrees, fixed = {"local_inputs": "degrees"}, Matern32()
    gpflow.set_trainable(fixed, False)
    cases: list[tuple[Any, Any, dict[str, Any], str | None]] = [
        (X, Y, {}, None),
        (X * [80, 170], Y, degrees, None),
        (np.repeat(X, 2, axis=0), np.repeat(Y, 2, axis=0), {}, None),
        (X * 1e5, Y, {}, None),
        (X * 1e5, Y, {"local_kernel": fixed}, "columns of X are far from standardised, such as"),
        (X, Y * 1e5, {}, None),
        (X, Y * 1e5, {"local_kernel": fixed}, "Y is up to"),
        (X, Y * 1e-4, {"likelihood": gpflow.likelihoods.Gaussian()}, "less than that of the least"),
        (X * [1.5, 3.1], Y, degrees, "look like radians"),
        (X * 0.01 + 40, Y, degrees, "lengthscales of local_kernel, which are chords"),
        (places, np.tile(Y[:20], [20, 1]), {}, None),
        (places, np.tile(Y[:20], [20, 1]), {"merge": "off"}, "400 rows are at 20 distinct places"),
    ]
    for inputs, targets, arguments, message in cases:
        model = alone((inputs, targets), num_neighbours=9, **arguments)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn_of_rows(model)
        found = [str(each.message) for each in caught]
        assert len(found) == (message is not None), (message, found)
        assert message is None or message in found[0]


def test_gradients_of_the_weights() -> None:
    """The closed form against automatic differentiation of a dense inverse."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 5, 5))
    K = tf.constant(A @ A.transpose(0, 2, 1))
    known = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 0, 1], [0, 0, 0, 0, 1]], bool)
    to_weights, to_log = rng.normal(size=(3, 5)), rng.normal(size=3)

    def dense(K: tf.Tensor, noise: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        weights, logs = [], []
        for row in range(3):
            places = np.flatnonzero(known[row])
            C = tf.gather(tf.gather(K[row], places), places, axis=1)
            inverse = tf.linalg.inv(C + noise * tf.eye(len(places), dtype=C.dtype))
            weights.append(
                tf.scatter_nd(places[:, None], inverse[-1] / inverse[-1, -1] ** 0.5, [5])
            )
            logs.append(-tf.math.log(inverse[-1, -1]))
        return tf.stack(weights), tf.stack(logs)

    results = []
    for function in (lambda K, noise: conditional_weights(K, tf.constant(known), noise), dense):
        noise = tf.constant(0.3, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch([K, noise])
            weights, logs = function((K + tf.linalg.matrix_transpose(K)) / 2, noise)
            total = tf.reduce_sum(weights * to_weights) + tf.reduce_sum(logs * to_log)
        results.append([weights, logs, *tape.gradient(total, [K, noise])])
    for mine, expected in zip(*results, strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-12)


def test_bad_input() -> None:
    data = rows(smooth=1.0, rough=0.1)
    model = make(data)
    wrong: list[tuple[VecchiaSGPR, dict[str, Any], str]] = [
        (model, {"checkpoint_dir": "folder"}, "checkpoint_dir"),
        (model, {"options": {"parts": "all"}}, "parts must be"),
        (model, {"batch_size": 100}, "batch_size: a VecchiaSGPR"),
        (model, {"optimizer": 0.1}, "optimizer: a VecchiaSGPR"),
        (model, {"data": data}, "data: a VecchiaSGPR"),
        (model, {"data": data, "batch_size": 100, "optimizer": 0.1}, "batch_size: a VecchiaSGPR"),
        (alone(data), {"num_inducing": 20}, "num_inducing"),
    ]
    for each, arguments, message in wrong:
        with pytest.raises(ValueError, match=message):
            idm.fit(each, progress=False, **arguments)
    few = alone((data[0][:5], data[1][:5]))
    assert np.isfinite(idm.fit(few, steps=1, progress=False).elbo)
