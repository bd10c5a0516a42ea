"""`deep.build`: what it makes, and that it trains."""

import gpflow
import numpy as np
import pytest

from interdomain import deep, fit

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)) @ np.diag([3.0, 1.0, 0.5, 0.1])
X -= X.mean(axis=0)


def assert_parts(model: deep.DeepGP, widths: list[int]) -> None:
    """Widths, numbers of variables, small inner covariances, and means that hand X on."""
    assert [layer.output_dim for layer in model.f_layers] == widths
    assert [layer.input_dim for layer in model.f_layers] == [4, *widths[:-1]]
    assert model.num_data == 120 and {layer.num_data for layer in model.f_layers} == {120}
    for layer in model.f_layers:
        sizes = [q_mu.shape[0] for q_mu, _ in layer.variational_parameters]
        assert 10 <= sum(sizes) <= 12, sizes
    scales = [
        {round(float(q_sqrt.numpy()[0, 0, 0]), 6) for _, q_sqrt in layer.variational_parameters}
        for layer in model.f_layers
    ]
    assert scales == [{0.01}] * (len(widths) - 1) + [{1.0}]
    hidden = model.f_layers[0].mean_function(X)
    directions = np.linalg.svd(X, full_matrices=False)[2][:2]
    np.testing.assert_allclose(hidden, X @ directions.T, atol=1e-10)
    assert not model.f_layers[0].mean_function.trainable_parameters
    for part in model.predict_f(np.concatenate([X[:5], 1e3 * X[:5]])):
        assert np.all(np.isfinite(part))


@pytest.mark.parametrize("features", ["harmonics", "activation", "points"])
def test_parts(features: str) -> None:
    model = deep.build(X, widths=[2, 1], features=features, num_inducing=12)
    assert_parts(model, [2, 1])


def test_means_of_wider_layers() -> None:
    model = deep.build(X, widths=[2, 3, 3, 2], num_inducing=12)
    assert_parts(model, [2, 3, 3, 2])
    hidden = model.f_layers[0].mean_function(X)
    wider = model.f_layers[1].mean_function(hidden)
    np.testing.assert_allclose(wider, np.hstack([hidden, np.zeros([120, 1])]))
    np.testing.assert_array_equal(model.f_layers[2].mean_function(wider), wider)


@pytest.mark.slow
def test_a_step_is_learned() -> None:
    """Two layers get far below the error that one which stays constant would have, and every
    parameter is trained."""
    x = np.linspace(-2, 2, 200)[:, None]
    y = np.sign(x) + 0.05 * rng.normal(size=x.shape)
    away = x[np.abs(x) > 0.3][:, None]
    model = deep.build(x, widths=[1, 1], num_inducing=12)
    before = [variable.numpy() for variable in model.trainable_variables]
    fit(model, (x, y), batch_size=100, steps=300, progress=False)
    assert np.sqrt(np.mean(np.square(model.predict_y(away)[0] - np.sign(away)))) < 0.15
    for start, variable in zip(before, model.trainable_variables, strict=True):
        assert not np.array_equal(start, variable.numpy()), variable.name


def test_own_parts_and_wrong_ones() -> None:
    likelihood = gpflow.likelihoods.Bernoulli()
    model = deep.build(
        X, widths=[1], features="points", likelihood=likelihood, num_inducing=5, q_diag=True
    )
    assert model.f_layers[0].q_sqrt.shape == (5, 1) and model.likelihood is likelihood
    with pytest.raises(ValueError, match=r"features must be .*harmonics.*found 'waves'"):
        deep.build(X, widths=[1], features="waves", num_inducing=4)
