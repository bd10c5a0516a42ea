"""Gradients against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from tests.conformance.helpers import assert_close


def assert_gradients(
    function: Callable[[], tf.Tensor],
    variables: Sequence[tf.Variable],
    *,
    step: float = 1e-5,
    rtol: float = 1e-6,
) -> None:
    """Of each entry of the vector ``function()``, to each entry of each variable."""
    with tf.GradientTape(persistent=True) as tape:
        parts = tf.unstack(function())
    gradients = [tape.gradient(part, variables, unconnected_gradients="zero") for part in parts]
    compiled = tf.function(function, autograph=False)
    for k, variable in enumerate(variables):
        start = variable.numpy()
        differences = np.zeros([len(parts), *start.shape])
        for index in np.ndindex(*start.shape):
            for sign in (1, -1):
                moved = np.array(start)
                moved[index] += sign * step
                variable.assign(moved)
                differences[(slice(None), *index)] += sign * compiled().numpy() / (2 * step)
        variable.assign(start)
        for gradient, expected in zip(gradients, differences, strict=True):
            assert_close(gradient[k], expected, rtol=rtol, atol=1e-7, message=variable.name)
