"""`deep.build`: what it makes, and that it trains."""

from __future__ import annotations

import gpflow
import numpy as np
import pytest
import tensorflow as tf

from interdomain import deep, training
from tests.posteriors.graph_ops import count_ops
from tests.tiers import in_tiers

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)) @ np.diag([3.0, 1.0, 0.5, 0.1])


@pytest.mark.parametrize("features", in_tiers(deep.FEATURES, quick=("harmonics",)))
def test_parts(features: str) -> None:
    """Widths, numbers of variables, small inner covariances, and means that hand X on."""
    model = deep.build(X, widths=[2, 3, 2], features=features, num_inducing=12, num_data=500)
    assert [layer.output_dim for layer in model.f_layers] == [2, 3, 2]
    assert [layer.input_dim for layer in model.f_layers] == [4, 2, 3]
    assert model.num_data == 500 and [layer.num_data for layer in model.f_layers] == [500] * 3
    for layer in model.f_layers:
        sizes = [q_mu.shape[0] for q_mu, _ in layer.variational_parameters]
        assert 10 <= sum(sizes) <= 12, sizes
    scales = [
        {round(float(q_sqrt.numpy()[0, 0, 0]), 6) for _, q_sqrt in layer.variational_parameters}
        for layer in model.f_layers
    ]
    assert scales == [{0.01}, {0.01}, {1.0}]
    hidden = model.f_layers[0].mean_function(X)
    directions = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2]
    np.testing.assert_allclose(hidden, (X - X.mean(axis=0)) @ directions.T, atol=1e-10)
    wider = model.f_layers[1].mean_function(hidden)
    np.testing.assert_allclose(wider, np.hstack([hidden, np.zeros([120, 1])]))
    assert not model.f_layers[0].mean_function.trainable_parameters
    assert np.all(np.isfinite(model.predict_f(X[:5])[0]))


@pytest.mark.parametrize(
    "features", in_tiers(("harmonics", "activation", "harmonic_points"), quick=())
)
def test_a_step_is_learned(features: str) -> None:
    """Two layers get far below the noise's variance that one that stays constant would need."""
    x = np.linspace(-2, 2, 200)[:, None]
    y = np.sign(x) + 0.05 * rng.normal(size=x.shape)
    model = deep.build(x, widths=[1, 1], features=features, num_inducing=12)
    training.fit(model, (x, y), batch_size=100, steps=300, natural_gradient=True, progress=False)
    away = np.abs(x[:, 0]) > 0.3
    mean, _ = model.predict_y(x)
    assert np.sqrt(np.mean((mean - np.sign(x))[away] ** 2)) < 0.15


def test_harmonics_need_no_box_and_no_cholesky() -> None:
    model = deep.build(X, widths=[2, 1], num_inducing=12)
    graph = tf.function(model.predict_f, autograph=False).get_concrete_function(X)
    assert count_ops(graph, ["Cholesky", "MatrixTriangularSolve"]) == 0
    far = model.predict_f(1e3 * X)
    assert np.all(np.isfinite(far[0])) and np.all(np.isfinite(far[1]))


def test_own_parts() -> None:
    model = deep.build(
        X,
        widths=[1],
        features="points",
        kernel=lambda columns: gpflow.kernels.Matern12(lengthscales=np.ones(columns)),
        likelihood=gpflow.likelihoods.Bernoulli(),
        num_inducing=5,
        q_diag=True,
    )
    (layer,) = model.f_layers
    assert isinstance(layer.kernel, gpflow.kernels.Matern12)
    assert layer.q_sqrt.shape == (5, 1) and isinstance(
        model.likelihood, gpflow.likelihoods.Bernoulli
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"widths": []}, "widths must be"),
        ({"widths": [2, 0]}, "widths must be positive integers, found"),
        ({"widths": [1.5]}, "widths"),
        ({"features": "waves"}, "features must be .*harmonics.*found 'waves'"),
        ({"num_inducing": 0}, "num_inducing must be"),
        ({"inner_scale": -1.0}, "inner_scale must be"),
        ({"kernel": 3}, "kernel must be"),
        ({"likelihood": 0.1}, "likelihood must be"),
        ({"num_samples": 0}, "num_samples must be"),
        ({"X": X[:, 0]}, "X must be"),
        ({"X": np.full([5, 2], np.nan)}, "X must be"),
        ({"num_data": 0}, "num_data must be"),
    ],
)
def test_wrong_arguments(given: dict, message: str) -> None:
    arguments = {"X": X, "widths": [1], "num_inducing": 4, **given}
    with pytest.raises(ValueError, match=message):
        deep.build(arguments.pop("X"), **arguments)
