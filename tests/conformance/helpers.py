"""Models to compare, and how to compare them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gpflow
import numpy as np
import pytest
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuu
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import parameter_dict
from tensorflow.types.experimental import ConcreteFunction

from .cases import Case

NUM_DATA = 13
Data = tuple[np.ndarray, np.ndarray]


def make_data(case: Case, num_outputs: int = 1, num_data: int = NUM_DATA) -> Data:
    """Inputs of the case's scale and smooth, noisy outputs, in the default float."""
    rng = np.random.default_rng(len(case.name) + num_outputs)
    X = rng.normal(size=(num_data, case.input_dim))
    directions = rng.normal(size=(case.input_dim, num_outputs))
    Y = np.sin(X @ directions) + 0.1 * rng.normal(size=(num_data, num_outputs))
    dtype = gpflow.default_float()
    return (case.scale * X).astype(dtype), Y.astype(dtype)


def make_inputs(case: Case, *shape: int) -> np.ndarray:
    """Inputs ``[*shape, D]`` that are none of :func:`make_data`'s."""
    rng = np.random.default_rng(99)
    X = case.scale * rng.normal(size=(*shape, case.input_dim))
    return X.astype(gpflow.default_float())


def double(kernel: Kernel) -> Kernel:
    """Make all its values twice as large."""
    factors = {"variance": 2.0, "variances": 2.0, "constant_variance": 2.0}
    factors |= {"amplitudes_real": 2**0.5, "amplitudes_imaginary": 2**0.5}
    for path, parameter in parameter_dict(kernel).items():
        parameter.assign(factors.get(path.rsplit(".", 1)[-1], 1.0) * parameter.numpy())
    return kernel


def random_q(
    rng: np.random.Generator, size: int, num_latent_gps: int, q_diag: bool
) -> tuple[np.ndarray, np.ndarray]:
    """A whitened q(u) of the prior's scale: q_mu ``[M, P]``, q_sqrt ``[M, P]`` or ``[P, M, M]``."""
    mean = rng.normal(size=(size, num_latent_gps))
    diagonal = rng.uniform(0.3, 0.9, size=(size, num_latent_gps))
    lower = np.tril(rng.normal(size=(num_latent_gps, size, size)), -1) / size
    return mean, diagonal if q_diag else lower + np.stack([np.diag(d) for d in diagonal.T])


def make_q(
    kernel: Kernel,
    inducing_variable: InducingVariables,
    *,
    whiten: bool,
    q_diag: bool = False,
    num_latent_gps: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    size = int(inducing_variable.num_inducing)
    mean, q_sqrt = random_q(np.random.default_rng(7), size, num_latent_gps, q_diag)
    root = np.eye(size)
    if not whiten:
        root = np.linalg.cholesky(Kuu(inducing_variable, kernel).numpy())
    q_sqrt = np.diag(root)[:, None] * q_sqrt if q_diag else root @ q_sqrt
    dtype = gpflow.default_float()
    return (root @ mean).astype(dtype), q_sqrt.astype(dtype)


def make_svgp(
    case: Case,
    *,
    whiten: bool = True,
    q_diag: bool = False,
    num_latent_gps: int = 1,
    likelihood: gpflow.likelihoods.Likelihood | None = None,
    parts: tuple[Kernel, InducingVariables] | None = None,
) -> gpflow.models.SVGP:
    """An SVGP with a random q(u) and a mean function.

    :param parts: What ``case.build()`` made, to share it between models.
    """
    kernel, inducing_variable = case.build() if parts is None else parts
    model = gpflow.models.SVGP(
        kernel,
        likelihood or gpflow.likelihoods.Gaussian(0.2),
        inducing_variable,
        mean_function=gpflow.mean_functions.Constant(0.3),
        num_latent_gps=num_latent_gps,
        whiten=whiten,
        q_diag=q_diag,
        num_data=3 * NUM_DATA,
    )
    q_mu, q_sqrt = make_q(
        kernel, inducing_variable, whiten=whiten, q_diag=q_diag, num_latent_gps=num_latent_gps
    )
    model.q_mu.assign(q_mu)
    model.q_sqrt.assign(q_sqrt)
    return model


def value_and_gradients(
    function: Callable[[], Any], variables: Any, weights: Any = None
) -> tuple[Any, Any]:
    """The gradients of the (weighted) sum of all values, to variables and tensors."""
    with tf.GradientTape() as tape:
        tape.watch(variables)
        value = function()
    weights = None if weights is None else tf.constant(weights, value.dtype)
    return value, tape.gradient(value, variables, output_gradients=weights)


def assert_slopes(
    function: Callable[[], tf.Tensor],
    variables: Sequence[tf.Variable],
    rng: np.random.Generator,
    *,
    rtol: float = 1e-6,
    atol: float = 0.0,
    step: float = 1e-5,
    num_directions: int = 1,
) -> None:
    """Check slopes of a number along random directions of all variables, by central differences."""
    gradients = [tf.convert_to_tensor(g) for g in value_and_gradients(function, variables)[1]]
    starts = [np.array(variable.numpy()) for variable in variables]
    for _ in range(num_directions):
        ends, directions = [], [rng.normal(size=start.shape) for start in starts]
        for sign in (1, -1):
            for variable, start, direction in zip(variables, starts, directions, strict=True):
                variable.assign(start + sign * step * direction)
            ends.append(function().numpy())
        slope = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=rtol, atol=atol)


def compiled(function: Callable[..., Any], *shapes: Any) -> Any:
    """In a graph for arguments of these shapes, in the default float."""
    signature = [tf.TensorSpec(shape, gpflow.default_float()) for shape in shapes]
    return tf.function(function, input_signature=signature, autograph=False)


def assert_close(
    actual: Any, desired: Any, *, rtol: float = 1e-8, atol: float = 0.0, message: str = ""
) -> None:
    """Equal to ``rtol`` relative to the largest entry, in every part of nested tuples."""
    actual, desired = (
        [tf.convert_to_tensor(v) if isinstance(v, tf.IndexedSlices) else v for v in parts]
        for parts in (tf.nest.flatten(actual), tf.nest.flatten(desired))
    )
    assert len(actual) == len(desired), message
    for value, reference in zip(actual, desired, strict=True):
        reference = np.asarray(reference)
        scale = float(np.max(np.abs(reference), initial=0.0))
        assert np.all(np.isfinite(reference)), message
        np.testing.assert_allclose(
            value, reference, rtol=0, atol=atol + rtol * scale, err_msg=message
        )


def assert_same_results(
    function: Callable[[], Any],
    reference: Callable[[], Any],
    variables: Sequence[tf.Variable | tf.Tensor],
    *,
    rtol: float = 1e-8,
    message: str = "",
) -> None:
    """All tensors of two nested results agree, and the gradients of a weighted sum of them with
    respect to each variable; no gradient is missing."""
    assert variables

    def weighted(call: Callable[[], Any]) -> tuple[list[tf.Tensor], list[tf.Tensor | None]]:
        rng = np.random.default_rng(3)
        with tf.GradientTape() as tape:
            tape.watch(variables)
            values = tf.nest.flatten(call())
            sizes = [tf.constant(rng.normal(size=value.shape), value.dtype) for value in values]
            objective = tf.add_n([tf.reduce_sum(v * s) for v, s in zip(values, sizes, strict=True)])
        return values, tape.gradient(objective, variables)

    actual, gradients = weighted(function)
    with disable_check_shapes():  # it takes most of the time, and an oracle needs none
        desired, references = weighted(reference)
    assert_close(actual, desired, rtol=rtol, message=message)
    for number, (gradient, expected) in enumerate(zip(gradients, references, strict=True)):
        name = f"{message} {getattr(variables[number], 'name', number)}".strip()
        assert expected is not None, f"the oracle does not depend on {name}"
        assert gradient is not None, f"no gradient for {name}"
        assert_close(gradient, expected, rtol=rtol, message=name)


assert_same_objective = assert_same_results
"""The check of results for an objective, which is one number."""


def assert_gradients(
    function: Callable[[], tf.Tensor],
    variables: Sequence[tf.Variable],
    *,
    step: float = 1e-5,
    rtol: float = 1e-6,
) -> None:
    """Check gradients of all entries of the vector ``function()``, for all entries of variables."""
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


def moved(model: Any) -> Any:
    """With a q that is not the prior, or several."""
    rng = np.random.default_rng(4)
    for mean, root in getattr(model, "variational_parameters", [(model.q_mu, model.q_sqrt)]):
        mean.assign(rng.normal(size=mean.shape))
        if root is not None:
            scales = rng.uniform(0.2, 0.6, size=(root.shape[0], *[1] * (root.shape.rank - 1)))
            root.assign(scales * root.numpy())
    return model


def step_graph(model: gpflow.models.SVGP, data: Data) -> ConcreteFunction:
    """The graph of a step of training: the elbo and its gradients."""
    step = tf.function(
        lambda: value_and_gradients(lambda: model.elbo(data), model.trainable_variables),
        autograph=False,
    )
    return step.get_concrete_function()


def change(model: gpflow.Module) -> None:
    """Move each parameter."""
    for parameter in model.parameters:
        variable = parameter.unconstrained_variable
        variable.assign_add(0.1 * tf.ones_like(variable))


def assert_refused(calls: Iterable[tuple[Callable[[], Any], str]]) -> None:
    """Each call raises a ValueError with its message."""
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
