"""Structured layers against GPflux's own layers, to which GPflow shows a dense Kuu and no more.

The dense model has the parameters of the other one, and the same draws of the hidden layer.
"""

from typing import Any

import gpflow
import gpflux
import numpy as np
import pytest
import tensorflow as tf
from gpflow.inducing_variables import SharedIndependentInducingVariables
from gpflow.kernels import SharedIndependent

from interdomain import deep
from interdomain.inducing_variables import SphericalHarmonics
from interdomain.kernels import SphericalMatern32
from interdomain.models import JointQ, QPerBlock
from tests.conformance.dense_twin import DenseTwin
from tests.conformance.helpers import assert_same_objective, step_graph
from tests.posteriors.graph_ops import count_ops

from .cases import (
    NUM_DATA,
    Make,
    activation,
    blocks,
    convolutional,
    harmonics,
    make_data,
    orthogonal,
    points,
    randomise,
    stacked,
)

pytestmark = pytest.mark.usefixtures("no_jitter")


class Dense(gpflux.layers.GPLayer):
    """GPflux's layer with the q of another layer, and with given draws. It has one q; a mean-field
    q is a joint one of several blocks."""

    def __init__(self, layer: deep.Layer, noise: Any) -> None:
        super().__init__(
            SharedIndependent(layer.kernel, layer.output_dim),
            SharedIndependentInducingVariables(DenseTwin(layer.inducing_variable)),
            num_data=layer.num_data,
            mean_function=layer.mean_function,
            whiten=layer.whiten,
            verbose=False,
        )
        self.q_mu, self.q_sqrt = layer.variational_parameters[0]
        if isinstance(layer.q, QPerBlock):
            self.q_mu = tf.concat(layer.q_mu, axis=0)
            self.q_sqrt = tf.linalg.LinearOperatorBlockDiag(
                [tf.linalg.LinearOperatorFullMatrix(root) for root in layer.q_sqrt]
            ).to_dense()
        self._noise = noise

    def _convert_to_tensor_fn(self, distribution: Any) -> tf.Tensor:
        return distribution.loc + distribution.scale.diag * self._noise


@pytest.mark.parametrize(
    ("make", "whiten"),
    [(harmonics, True), (activation, False), (blocks, True)],
    ids=["harmonics", "activation", "blocks"],
)
def test_bound_of_dense_layers(make: Make, whiten: bool) -> None:
    """With its gradients."""
    layers = [make(2, gpflow.mean_functions.Identity(), whiten=whiten), make(1, whiten=whiten)]
    model = deep.DeepGP(layers, gpflow.likelihoods.Gaussian(0.1), seed=3)
    model.set_step(5)
    randomise(model)
    data, noise = make_data(), model._numbers(0, [1, NUM_DATA, 2])[0]

    def dense() -> tf.Tensor:
        layers = [Dense(layer, noise) for layer in model.f_layers]
        return gpflux.models.DeepGP(layers, model.likelihood).elbo(data)

    assert_same_objective(lambda: model.elbo(data), dense, model.trainable_variables)


def test_the_bound_of_gpflux_is_the_same() -> None:
    """Layers inside of GPflux's model, with the draws of ours."""
    model = stacked(convolutional, orthogonal)
    randomise(model)
    noise = model._numbers(0, [1, NUM_DATA, 2])[0]
    with pytest.MonkeyPatch.context() as patched:
        numbers = iter([noise, 0.0])  # the last layer is drawn as well, for nothing
        patched.setattr(
            "tensorflow_probability.distributions.MultivariateNormalDiag.sample",
            lambda self, *args: self.loc + self.scale.diag * next(numbers),
        )
        other = gpflux.models.DeepGP.elbo(model, make_data())
    np.testing.assert_allclose(model.elbo(make_data()), other, rtol=1e-10)


def test_harmonics_factorise_nothing() -> None:
    """Forward and backward, with full and diagonal q's, and with a prior of full rank."""
    first, second = (
        harmonics(2, gpflow.mean_functions.Identity(), q_diag=q_diag) for q_diag in (False, True)
    )
    kernel = SphericalMatern32()
    last = deep.Layer(kernel, JointQ(kernel, SphericalHarmonics(3, [0, 1, 2])), NUM_DATA)
    model = deep.DeepGP([first, second, last], gpflow.likelihoods.Gaussian())
    graph = step_graph(model, make_data())
    assert count_ops(graph, ["Cholesky", "MatrixTriangularSolve", "MatrixSolve"]) == 0


def test_points_factorise_once_in_each_layer() -> None:
    """The counter counts: GPflow's dense path factorises Kuu twice in each layer."""
    own = tf.function(stacked(points, points).elbo, autograph=False)
    assert count_ops(own.get_concrete_function(make_data()), ["Cholesky"]) == 2
