"""A model with several q's next to the stock SVGP with one block-diagonal q that it is to equal."""

from __future__ import annotations

from collections.abc import Sequence

import gpflow
import numpy as np
import tensorflow as tf
from check_shapes import disable_check_shapes
from gpflow.covariances import Kuf, Kuu
from gpflow.inducing_variables import InducingVariables

from interdomain.models.one_pass import OnePassSVGP
from tests.conformance.helpers import assert_close, value_and_gradients


def q_gradients(gradients: list[tf.Tensor], parameters: list[gpflow.Parameter]) -> list[np.ndarray]:
    """In the shape of the parameter: a triangular one's transform only moves the entries."""
    return [
        gradient.numpy() if parameter.shape.rank == 2 else parameter.transform.forward(gradient)
        for gradient, parameter in zip(gradients, parameters, strict=True)
    ]


def assert_same_bound(
    model: OnePassSVGP,
    joint: gpflow.models.SVGP,
    q: Sequence[gpflow.Parameter],
    data: tuple,
    *,
    rtol: float = 1e-8,
) -> None:
    """The same elbo and gradients, those to the blocks of the joint q included.

    :param q: All means of the model, and then all roots.
    """
    of_q = {id(p.unconstrained_variable) for p in q}
    common = [v for v in model.trainable_variables if id(v) not in of_q]
    assert len(common) >= 5  # kernel, likelihood, inducing variables, mean function
    value, gradients = value_and_gradients(
        lambda: model.elbo(data), (*common, *(p.unconstrained_variable for p in q))
    )
    with disable_check_shapes():
        expected, expected_gradients = value_and_gradients(
            lambda: joint.elbo(data),
            (*common, joint.q_mu.unconstrained_variable, joint.q_sqrt.unconstrained_variable),
        )
    assert_close(value, expected, rtol=rtol)
    for variable, gradient, reference in zip(common, gradients, expected_gradients, strict=False):
        assert gradient is not None, variable.name
        assert np.any(np.abs(reference) > 1e-6), variable.name
        assert_close(gradient, reference, rtol=rtol, message=variable.name)
    blocks = q_gradients(gradients[len(common) :], list(q))
    to_mean, to_root = q_gradients(expected_gradients[len(common) :], [joint.q_mu, joint.q_sqrt])
    start, num_blocks = 0, len(q) // 2
    for mean, root in zip(blocks[:num_blocks], blocks[num_blocks:], strict=True):
        rows = slice(start, start + len(mean))
        assert_close(mean, to_mean[rows], rtol=rtol)
        of_block = to_root[rows] if to_root.ndim == 2 else np.tril(to_root[:, rows, rows])
        assert_close(root, of_block, rtol=rtol)
        start = rows.stop
    assert start == len(to_mean)


def mean_field_optimum(
    model: OnePassSVGP, inducing_variable: InducingVariables, sizes: Sequence[int], data: tuple
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Means and covariances of the q's for a Gaussian likelihood, not whitened.

    With ``W = K^{-1} Kuf`` and noise s, log of the posterior is quadratic: its precision is
    ``P = K^{-1} + W W^T / s``. The best mean of a product of Gaussians is that of the whole,
    ``P^{-1} W y / s``; the best covariances are the inverses of P's diagonal blocks.

    :param inducing_variable: All inducing variables as one, with a dense Kuu.
    """
    X, Y = data
    K = Kuu(inducing_variable, model.kernel).numpy()
    W = np.linalg.solve(K, Kuf(inducing_variable, model.kernel, X).numpy())
    noise = float(model.likelihood.variance.numpy())
    precision = np.linalg.inv(K) + W @ W.T / noise
    mean = np.linalg.solve(precision, W @ Y / noise)
    ends = np.cumsum(sizes)
    blocks = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    return [mean[b] for b in blocks], [np.linalg.inv(precision[b, b]) for b in blocks]
