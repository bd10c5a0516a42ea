"""Predictions through the layers, against quadrature and Monte Carlo; functions; resumption."""

from pathlib import Path
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints
from gpflux.models.deep_gp import sample_dgp
from scipy.special import logsumexp
from scipy.stats import norm

import interdomain as idm
from interdomain import deep
from interdomain.deep.model import spread_draws
from interdomain.models import JointQ

from .cases import NUM_DATA, convolutional, harmonics, make_data, points, randomise, stacked


@pytest.fixture(scope="module")
def narrow() -> deep.DeepGP:
    """One hidden output, over which an integral is taken."""
    hidden = points(1)
    kernel = gpflow.kernels.SquaredExponential()
    q = JointQ(kernel, InducingPoints(np.linspace(-2, 2, 5)[:, None]))
    last = deep.Layer(kernel, q, NUM_DATA, gpflow.mean_functions.Constant([0.3]))
    model = deep.DeepGP([hidden, last], gpflow.likelihoods.Gaussian(0.1), num_samples=100)
    randomise(model)
    return model


def integrated(model: deep.DeepGP, X: Any) -> tuple[Any, Any, Any]:
    """Weights of 40 Gauss-Hermite nodes, and moments of f at each, ``[S, N]``."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    mean, variance = (part.numpy()[:, 0] for part in model.f_layers[0].predict(X))
    found = [
        [
            part.numpy()[:, 0]
            for part in model.f_layers[1].predict((mean + np.sqrt(variance) * z)[:, None])
        ]
        for z in nodes
    ]
    means, variances = (np.array(part) for part in zip(*found, strict=True))
    return weights / weights.sum(), means, variances


def test_predictions_are_integrals(narrow: deep.DeepGP) -> None:
    """Mean, variance, and log density of the mixture, with as many samples as it takes."""
    X, Y = make_data()
    weights, means, variances = integrated(narrow, X)
    mean = weights @ means
    variance = weights @ (variances + np.square(means)) - np.square(mean)
    found = narrow.predict_f(X, num_samples=1024)
    np.testing.assert_allclose(found[0][:, 0], mean, atol=2e-3)
    np.testing.assert_allclose(found[1][:, 0], variance, atol=4e-3)
    y_moments = narrow.predict_y(X, num_samples=1024)
    np.testing.assert_allclose(y_moments[1][:, 0], variance + 0.1, atol=4e-3)
    densities = norm.logpdf(Y[:, 0], means, np.sqrt(variances + 0.1))
    expected = logsumexp(densities, b=weights[:, None], axis=0)
    found = narrow.predict_log_density((X, Y), num_samples=1024)
    np.testing.assert_allclose(found, expected, atol=0.03)  # most in the tails


def test_the_bound_is_an_integral(narrow: deep.DeepGP) -> None:
    """Its samples are drawn for each row: the mean over steps is the expectation."""
    X, Y = make_data()
    weights, means, variances = integrated(narrow, X)
    squares = np.square(Y[:, 0] - means) + variances
    rows = weights @ (-0.5 * np.log(2 * np.pi * 0.1) - squares / 0.2)
    kl = sum(float(layer.prior_kl()) for layer in narrow.f_layers)
    bounds = []
    for step in range(10):
        narrow.set_step(step)
        bounds.append(float(narrow.elbo((X, Y))))
    assert len(set(bounds)) == 10
    error = np.std(bounds) / np.sqrt(9)
    assert abs(np.mean(bounds) - (rows.sum() - kl)) < 4 * error < 0.02 * abs(rows.sum())
    narrow.set_step(0)
    assert float(narrow.elbo((X, Y))) == bounds[0]
    half = float(narrow.elbo((X[:20], Y[:20])))
    assert abs(half - (2 * rows[:20].sum() - kl)) < 0.2 * abs(half)


def test_classes() -> None:
    """The probability of a class is the mean of the samples' probabilities."""
    hidden = points(2, gpflow.mean_functions.Identity())
    model = deep.DeepGP([hidden, points(1)], gpflow.likelihoods.Bernoulli())
    randomise(model, scale=0.8)
    X, Y = make_data()
    Y = (Y > 0).astype(float)
    probabilities, variance = model.predict_y(X, num_samples=16)
    inputs = _hidden(model, X, 16)
    each = [
        norm.cdf(mean / np.sqrt(1 + variances))
        for mean, variances in (model.f_layers[1].predict(value) for value in inputs)
    ]
    # GPflow's probit keeps a thousandth away from zero and one.
    np.testing.assert_allclose(probabilities, np.mean(each, axis=0), atol=1.5e-3)
    np.testing.assert_allclose(variance, probabilities * (1 - probabilities), rtol=1e-9)
    densities = model.predict_log_density((X, Y), num_samples=16)
    expected = np.log(np.where(Y[:, 0] > 0, probabilities[:, 0], 1 - probabilities[:, 0]))
    np.testing.assert_allclose(densities, expected, rtol=1e-9)


def _hidden(model: deep.DeepGP, X: Any, num_samples: int) -> Any:
    flat, _ = model._last_inputs(
        tf.constant(X), lambda layer, _: spread_draws([2], num_samples, 0)[layer]
    )
    return np.reshape(flat, [num_samples, len(X), 2])


def test_predictions_do_not_depend_on_the_rows_beside() -> None:
    model = stacked(points, points, points)
    randomise(model)
    X, _ = make_data()
    mean, variance = model.predict_f(X)
    alone = [model.predict_f(X[[row]]) for row in (0, 7)]
    np.testing.assert_allclose([m[0] for m, _ in alone], mean.numpy()[[0, 7]], rtol=1e-10)
    np.testing.assert_allclose([v[0] for _, v in alone], variance.numpy()[[0, 7]], rtol=1e-9)
    assert np.array_equal(model.predict_f(X)[0], mean)


def test_a_single_layer_is_an_svgp() -> None:
    layer, data = harmonics(1), make_data()
    randomise(layer)
    model = deep.DeepGP([layer], gpflow.likelihoods.Gaussian(0.1))
    q = {"q_mu": layer.q_mu, "q_sqrt": layer.q_sqrt, "num_data": NUM_DATA}
    parts = layer.kernel, model.likelihood, layer.inducing_variable
    twin = gpflow.models.SVGP(*parts, **q)

    def all_of(model: Any) -> list[Any]:
        moments = *model.predict_f(data[0]), *model.predict_y(data[0])
        return [model.elbo(data), *moments, model.predict_log_density(data)]

    for own, other in zip(all_of(model), all_of(twin), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10)


def test_a_resumed_fit_draws_what_it_would_have_drawn(tmp_path: Path) -> None:
    """The draws depend on the step alone (above), and a fit says which it is."""
    data, model, steps = make_data(), deep.DeepGP([points(1)], gpflow.likelihoods.Gaussian()), []
    arguments: dict[str, Any] = {"batch_size": 8, "checkpoint_dir": tmp_path, "progress": False}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(deep.DeepGP, "set_step", lambda _, step: steps.append(int(step)))
        for number in (2, 4):
            idm.fit(model, data, steps=number, **arguments)
    assert sorted(set(steps)) == [1, 2, 3, 4] and steps == sorted(steps)


def test_l_bfgs_minimises_one_function() -> None:
    """With the draws of step 0, whatever was drawn before."""
    data = make_data()
    model = stacked(points, points, num_samples=4)
    before = float(model.elbo(data))
    model.set_step(3)
    found = idm.fit(model, data, steps=3, progress=False).elbo
    model.set_step(0)
    assert found == pytest.approx(float(model.elbo(data)), rel=1e-9) and found > before


def test_a_deep_gp_is_a_function() -> None:
    """One value at a place; functions have the moments of predictions."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(6, 2))
    model = stacked(harmonics, points)
    randomise(model)
    tf.random.set_seed(0)
    functions = [sample_dgp(model) for _ in range(20)]
    np.testing.assert_allclose(functions[0](X[2:4]), functions[0](X)[2:4], rtol=1e-10)
    values = np.stack([function(X) for function in functions])
    mean, variance = model.predict_f(X, num_samples=1024)
    assert np.all(np.abs(values.mean(axis=0) - mean) < 5 * np.sqrt(variance / 20))
    assert np.all(np.abs(values.var(axis=0, ddof=1) / variance - 1) < 5 * np.sqrt(2 / 19))


def test_a_convolution_draws_one_function_of_patches() -> None:
    layer = convolutional(4)  # two outputs at each of two pixels
    randomise(layer)
    images = make_data()[0][:3]
    tf.random.set_seed(2)
    image_function = layer.sample()
    tf.random.set_seed(2)
    pixel_function = deep.Layer(layer.kernel, layer.q, NUM_DATA, layer.mean_function).sample()
    expected = np.concatenate(
        [pixel_function(images[:, [0]]), pixel_function(images[:, [1]])], axis=1
    )
    np.testing.assert_allclose(image_function(images), expected, rtol=1e-9)


def test_numbers_of_samples_and_seeds() -> None:
    """All of the constructor's, and those of a prediction, with hidden layers and without."""
    X = np.zeros([4, 2])
    for widths in ([2, 1], [1]):
        for name in ("num_samples", "num_prediction_samples", "seed"):
            for wrong in (-1, 2.5, "a", None, True, 0)[: 6 - (name == "seed")]:
                with pytest.raises(ValueError, match=f"{name} must be an integer"):
                    deep.build(X, widths=widths, num_inducing=3, **{name: wrong})
        with pytest.raises(ValueError, match="seed must be an integer from 0 to 2147483647"):
            deep.build(X, widths=widths, num_inducing=3, seed=2**31)
        model = deep.build(X, widths=widths, num_inducing=3, seed=2**31 - 1)
        with pytest.raises(ValueError, match="num_samples must be an integer of 1 or more"):
            model.predict_f(X, num_samples=0)
        assert np.all(np.isfinite(model.elbo((X, X[:, :1]))))
    kernel, q = model.f_layers[0].kernel, model.f_layers[0].q
    for wrong, message in (
        ({"kernel": "rbf"}, "kernel must be a GPflow kernel, found str"),
        ({"mean_function": 0.5}, "mean_function must be a function of X, found float"),
    ):
        with pytest.raises(ValueError, match=message):
            deep.Layer(**({"kernel": kernel, "q": q, "num_data": 4} | wrong))
