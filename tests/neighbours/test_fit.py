"""Training: which parts are kept, what is found, and what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf

import interdomain as idm
from interdomain.models import VecchiaSGPR
from interdomain.neighbours.local_kernel import conditional_weights

NUM_ROWS = 700


def rows(*, smooth: float, rough: float, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """A wave over all of a square, and a rough function."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(NUM_ROWS, 2))
    kernel = gpflow.kernels.Matern32(lengthscales=0.15)
    root = np.linalg.cholesky(np.asarray(kernel(X)) + 1e-8 * np.eye(NUM_ROWS))
    f = smooth * np.sin(2 * X[:, :1] + X[:, 1:]) + rough * root @ rng.normal(size=(NUM_ROWS, 1))
    return X, f + noise * rng.normal(size=f.shape)


def make(data: Any, **arguments: Any) -> VecchiaSGPR:
    box = idm.kernels.Periodized.from_data(gpflow.kernels.Matern52(), data[0], margin=2.0)
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(box, 40)
    defaults = {"num_neighbours": 8, "noise_variance": 0.1, "progress": False}
    return VecchiaSGPR(
        data,
        idm.kernels.FiniteRank(box, features),
        features,
        local_kernel=gpflow.kernels.Matern32(lengthscales=np.ones(2)),
        **(defaults | arguments),
    )


@pytest.mark.parametrize(
    ("smooth", "rough", "kept"), [(1.0, 0.0, {"features"}), (3.0, 0.3, {"both"})]
)
def test_the_evidence_decides(smooth: float, rough: float, kept: set[str]) -> None:
    model = make(rows(smooth=smooth, rough=rough))
    parts = idm.fit(model, steps=2, progress=False).parts
    assert parts is not None and parts.kept in kept and str(parts).count("\n") == 1
    assert set(parts.evidence) == {"features", "neighbours", "both"}
    np.testing.assert_allclose(model.elbo() / NUM_ROWS, parts.evidence[parts.kept], rtol=1e-9)
    np.testing.assert_allclose(sum(parts.shares.values()), 1)
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
    model = VecchiaSGPR((X, Y), local_kernel=gpflow.kernels.Matern32(), num_neighbours=12)
    result = idm.fit(model, progress=False)
    assert result.converged and result.parts is not None and result.parts.kept == "neighbours"
    exact = gpflow.models.GPR((X, Y), gpflow.kernels.Matern32(lengthscales=0.15), None, 0.0025)
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
    for parts, other in (("features", "neighbours"), ("neighbours", "features")):
        idm.fit(model, steps=1, progress=False, options={"parts": parts})
        assert (*block, model.local_kernel, model.num_neighbours) == built
        assert model.parts == parts and all(p.trainable for p in model.parameters)
        shared = {"local_kernel": model.local_kernel, "likelihood": model.likelihood}
        alone = VecchiaSGPR(
            data,
            *(block if parts == "features" else ()),
            num_neighbours=0 if parts == "features" else 8,
            progress=False,
            **shared,
        )
        tf.train.Checkpoint(model=model).write(str(tmp_path / parts))
        restored = make(data)
        restored.use(other)
        restored.elbo()
        tf.train.Checkpoint(model=restored).read(str(tmp_path / parts)).expect_partial()
        restored.search()
        pickled = pickle.loads(pickle.dumps(model))
        for each in (model, restored, copy.deepcopy(model), pickled):
            assert each.parts == parts
            np.testing.assert_allclose(each.elbo(), alone.elbo(), rtol=1e-10)
            for mine, expected in zip(each.predict_f(X), alone.predict_f(X), strict=True):
                np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-10)
        if parts == "features":
            assert idm.sample_functions(model, 2)(X).shape == (2, 7, 1)
            idm.save(model, tmp_path / "saved")
        else:
            with pytest.raises(ValueError, match="looks up neighbours"):
                idm.save(model, tmp_path / "saved")
        pickled.extend((X, data[1][:7]))
        alone.extend((X, data[1][:7]))
        np.testing.assert_allclose(pickled.elbo(), alone.elbo(), rtol=1e-10)
    names = set(gpflow.utilities.parameter_dict(model))
    assert names == set(gpflow.utilities.parameter_dict(make(data)))
    before = model.local_kernel.lengthscales.numpy()
    fitted = idm.fit(model, steps=1, progress=False).parts
    assert fitted is not None and set(fitted.evidence) == {"features", "neighbours", "both"}
    assert model.parts == fitted.kept == "both"
    np.testing.assert_allclose(model.local_kernel.lengthscales, before, rtol=0.5)


def test_an_error_leaves_the_parts_as_they_were() -> None:
    model = make(rows(smooth=1.0, rough=0.3))

    def stop(*_: Any) -> None:
        raise KeyError

    with pytest.raises(KeyError):
        idm.fit(model, progress=False, options={"parts": "neighbours"}, callbacks=[stop])
    assert model.parts == "both"
    with pytest.raises(ValueError, match="parts must be 'neighbours', found 'both'"):
        VecchiaSGPR(model.arrays, local_kernel=gpflow.kernels.Matern32()).use("both")


def test_rare_rows_set_the_noise() -> None:
    """One in 70 rows is repeated with another target: a sample without any would let the noise
    vanish."""
    X, Y = rows(smooth=0.0, rough=1.0, noise=0.0)
    X = np.concatenate([X, X[:10]])
    Y = np.concatenate([Y, Y[:10] + 0.5])
    model = VecchiaSGPR((X, Y), local_kernel=gpflow.kernels.Matern32(), num_neighbours=8)
    result = idm.fit(model, progress=False)
    assert result.elbo / NUM_ROWS > -0.5


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
    with pytest.raises(ValueError, match="checkpoint_dir"):
        idm.fit(model, checkpoint_dir="folder", progress=False)
    with pytest.raises(ValueError, match="parts must be"):
        idm.fit(model, progress=False, options={"parts": "all"})
    for arguments in ({"batch_size": 100}, {"optimizer": 0.1}, {"data": data}):
        with pytest.raises(ValueError, match=f"{next(iter(arguments))}: a VecchiaSGPR"):
            idm.fit(model, progress=False, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="batch_size: a VecchiaSGPR"):
        idm.fit(model, data, batch_size=100, optimizer=0.1, progress=False)
    alone = VecchiaSGPR(data, local_kernel=gpflow.kernels.Matern32())
    with pytest.raises(ValueError, match="num_inducing"):
        idm.fit(alone, num_inducing=20, progress=False)
    few = VecchiaSGPR((data[0][:5], data[1][:5]), local_kernel=gpflow.kernels.Matern32())
    assert np.isfinite(idm.fit(few, steps=1, progress=False).elbo)
