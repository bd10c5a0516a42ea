"""Optimisers: the first steps lead where they lead the dense twin.

An optimiser sees no more of a model than its loss, gradients and variables. The first two are
compared for each case in test_svgp.py; here each class has one optimiser in turn.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable

import gpflow
import keras
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes

from .cases import ONE_OF_EACH_KIND, REPRESENTATIVES, Case
from .dense_twin import dense_twin
from .helpers import assert_close, make_data, make_inputs, make_svgp
from .selection import param

Loss = Callable[[], tf.Tensor]
Step = Callable[[Loss, gpflow.models.SVGP], None]


def scipy_steps(loss: Loss, model: gpflow.models.SVGP) -> None:
    gpflow.optimizers.Scipy().minimize(
        loss, model.trainable_variables, compile=False, options={"maxiter": 2}
    )


def keras_steps(loss: Loss, model: gpflow.models.SVGP) -> None:
    optimizer = keras.optimizers.Adam(0.01)
    variables = model.trainable_variables
    for _ in range(2):
        with tf.GradientTape() as tape:
            value = loss()
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))


def natural_and_adam_steps(loss: Loss, model: gpflow.models.SVGP) -> None:
    """Natural gradients for q, Adam (of tf_keras) for the rest, in turns."""
    gpflow.set_trainable(model.q_mu, False)
    gpflow.set_trainable(model.q_sqrt, False)
    adam = gpflow.keras.tf_keras.optimizers.Adam(0.01)
    natural = gpflow.optimizers.NaturalGradient(gamma=0.05)
    for _ in range(2):
        natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
        adam.minimize(loss, model.trainable_variables)


STEPS = (scipy_steps, keras_steps, natural_and_adam_steps)


@pytest.mark.parametrize(
    ("case", "steps"),
    [
        param(case, steps, id=f"{case.name}-{steps.__name__}", quick=case in ONE_OF_EACH_KIND)
        for case, steps in zip(REPRESENTATIVES, itertools.cycle(STEPS), strict=False)
    ],
)
def test_steps(case: Case, steps: Step) -> None:
    model = make_svgp(case, likelihood=gpflow.likelihoods.StudentT())
    twin = dense_twin(copy.deepcopy(model))
    data = make_data(case)
    before = model.training_loss(data).numpy()
    parameters = gpflow.utilities.read_values(model)
    steps(model.training_loss_closure(data, compile=False), model)
    with disable_check_shapes():
        steps(twin.training_loss_closure(data, compile=False), twin)
    after = model.training_loss(data).numpy()
    assert after < before - 1e-3
    assert_close(after, twin.training_loss(data), rtol=1e-6)
    X = make_inputs(case, 5)
    assert_close(model.predict_f(X), twin.predict_f(X), rtol=1e-5)
    for path, value in gpflow.utilities.read_values(model).items():
        assert np.any(value != parameters[path]), f"{path} has not moved"
