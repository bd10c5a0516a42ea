"""Optimisers, and the optimum they find."""

from __future__ import annotations

from collections.abc import Callable

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import InducingPoints

from interdomain.inducing_variables import HarmonicInducingPoints, SumInducingVariables
from interdomain.kernels import HarmonicKernel
from interdomain.models import AdditiveSVGP
from interdomain.training import fit
from interdomain.transforms import Negation
from tests.conformance.dense_twin import DenseTwin
from tests.conformance.helpers import value_and_gradients
from tests.conformance.selection import param

NUM_DATA = 25


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(NUM_DATA, 2))
    return X, np.sin(2 * X[:, :1]) + 0.5 * X[:, 1:] + 0.1 * rng.normal(size=(NUM_DATA, 1))


def harmonic(**arguments) -> AdditiveSVGP:  # noqa: ANN003
    kernel = HarmonicKernel(gpflow.kernels.SquaredExponential(), Negation(0))
    Z = np.random.default_rng(1).uniform(-2, 2, size=(2, 4, 2))
    return AdditiveSVGP(
        kernel, gpflow.likelihoods.Gaussian(0.1), HarmonicInducingPoints(Z), **arguments
    )


def stock(**arguments) -> AdditiveSVGP:  # noqa: ANN003
    kernel = gpflow.kernels.Matern32(active_dims=[0]) + gpflow.kernels.Matern52(active_dims=[1])
    Z = np.random.default_rng(1).uniform(-2, 2, size=(6, 2))
    blocks = SumInducingVariables([InducingPoints(Z), InducingPoints(Z[:3])])
    return AdditiveSVGP(kernel, gpflow.likelihoods.Gaussian(0.1), blocks, **arguments)


BUILD_Q = pytest.mark.parametrize(
    ("build", "whiten"),
    [param(harmonic, True, id="harmonic", quick=False), param(stock, False, id="stock")],
)


def train_q_only(model: AdditiveSVGP) -> None:
    for part in (model.kernel, model.likelihood, model.inducing_variable):
        gpflow.set_trainable(part, False)


def scipy(model: gpflow.models.SVGP, data: tuple, iterations: int = 2000) -> float:
    gpflow.optimizers.Scipy().minimize(
        model.training_loss_closure(data),
        model.trainable_variables,
        options={"maxiter": iterations, "ftol": 1e-13, "gtol": 1e-6},
    )
    return float(model.elbo(data))


@pytest.mark.full
@BUILD_Q
def test_optima(build: Callable[..., AdditiveSVGP], whiten: bool, data: tuple) -> None:
    """Natural gradients and L-BFGS find the same mean-field optimum; it is below the optimum of
    a joint q(u), which is that of an SGPR, and both are below the evidence."""
    model, other = build(whiten=whiten), build(whiten=whiten)
    train_q_only(other)
    by_scipy = scipy(other, data)

    closure = model.training_loss_closure(data, compile=False)
    natural = gpflow.optimizers.NaturalGradient(gamma=0.5)

    @tf.function(autograph=False)
    def sweep() -> tf.Tensor:
        natural.minimize(closure, model.variational_parameters)
        return model.elbo(data)

    elbos = [float(model.elbo(data)), *(float(sweep()) for _ in range(800))]
    assert np.all(np.diff(elbos) > -1e-8), elbos
    assert elbos[-1] > elbos[0] + 10
    assert abs(elbos[-1] - by_scipy) < 1e-4

    noise = float(model.likelihood.variance.numpy())
    twin = DenseTwin(model.inducing_variable)
    joint = gpflow.models.SGPR(data, model.kernel, twin, noise_variance=noise).elbo()
    exact = gpflow.models.GPR(data, model.kernel, noise_variance=noise).log_marginal_likelihood()
    assert elbos[-1] < joint - 1e-3
    assert joint < exact


@BUILD_Q
def test_one_block_at_a_time(build: Callable[..., AdditiveSVGP], whiten: bool, data: tuple) -> None:
    """A step of size one for one block is its exact optimum given the others: coordinate ascent.
    For all blocks at once it is too far, as they explain the same data."""
    model = build(whiten=whiten)
    variables = [p.unconstrained_variable for pair in model.variational_parameters for p in pair]
    evaluate = tf.function(
        lambda: value_and_gradients(lambda: model.elbo(data), variables), autograph=False
    )
    natural = gpflow.optimizers.NaturalGradient(gamma=1.0)
    elbos = [float(model.elbo(data))]
    for _ in range(3):
        for t, pair in enumerate(model.variational_parameters):
            natural.minimize(model.training_loss_closure(data, compile=False), [pair])
            value, gradients = evaluate()
            elbos.append(float(value))
            assert max(float(np.max(np.abs(g))) for g in gradients[2 * t : 2 * t + 2]) < 1e-5
    assert np.all(np.diff(elbos) > -1e-8), elbos


@pytest.mark.parametrize(
    ("build", "options"),
    [
        param(stock, {"method": "adam", "learning_rate": 0.05}, id="adam", quick=False),
        param(
            harmonic,
            {"natural_gradient": 0.3, "learning_rate": 0.05, "batch_size": 10},
            id="natural-gradients-minibatches",
            quick=False,
        ),
        param(
            stock,
            {"natural_gradient": 0.3, "learning_rate": 0.05},
            id="natural-gradients",
            quick=False,
        ),
        param(harmonic, {"method": "l-bfgs"}, id="l-bfgs"),
    ],
)
def test_fit(build: Callable[..., AdditiveSVGP], options: dict, data: tuple) -> None:
    model = build(num_data=NUM_DATA)
    before, values = float(model.elbo(data)), gpflow.utilities.read_values(model)
    fit(model, data, steps=25, progress=False, **options)
    assert float(model.elbo(data)) > before + 5
    for path, value in gpflow.utilities.read_values(model).items():
        assert np.any(value != values[path]), f"{path} has not moved"


def test_tf_keras_adam(data: tuple) -> None:
    model = harmonic(q_diag=True)
    before = float(model.elbo(data))
    adam = gpflow.keras.tf_keras.optimizers.Adam(0.05)
    # With AutoGraph, as a user's decorator has it.
    step = tf.function(
        lambda: adam.minimize(model.training_loss_closure(data), model.trainable_variables)
    )
    for _ in range(20):
        step()
    assert float(model.elbo(data)) > before + 5
