"""The precision ``B = I + D G D / s`` of the whitened inducing variables given Gaussian data.

D is diagonal, ``G = Kuf Kfu``, and s is the noise variance. LAPACK factorises B once, and the
gradient needs only the inverse of the factor. As ``G D B^{-1} / s = D^{-1} (I - B^{-1})``, no
further product is computed, and no gradient of a Cholesky factor.

In compiled functions, a B of few rows whose G has a gradient is factorised by TensorFlow
(:mod:`interdomain.linalg.small_precision`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array
from .._tracing import numpy_function
from . import lapack
from .small_precision import MOST_ROWS, once, small_precision_terms

_NOT_FACTORISED = (
    "Cholesky decomposition was not successful: I + R^{-1} Kuf Kfu R^{-T} / s, with the root R of "
    "Kuu and the noise variance s, is not positive definite in float64; s is too small for it."
)


def precision_terms(
    scale: tf.Tensor,
    gram: tf.Tensor,
    columns: tf.Tensor,
    noise_variance: tf.Tensor,
    *,
    gram_gradient: bool,
    refuse: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """``log det B`` and ``|B^{-1/2} D columns / s|^2`` for ``B = I + D G D / s``, all in float64.

    Both terms have first derivatives; a second derivative raises an error.

    :param scale: The diagonal of D, ``[M]``.
    :param gram: A symmetric matrix ``[K, K]``; G is its leading block ``[M, M]``. It is not copied.
    :param columns: ``[M, P]``.
    :param noise_variance: s, ``[]``.
    :param gram_gradient: Whether ``gram`` has a gradient, which is dense; otherwise ``gram`` is a
        constant.
    :param refuse: Whether a finite B without a factor is an error; if False, both terms are NaN.
    :raises tf.errors.InvalidArgumentError: If B is finite and cannot be factorised. If B is not
        finite, both terms are NaN.
    """
    message = _NOT_FACTORISED if refuse else None

    if gram_gradient and columns.shape[0] <= MOST_ROWS and not tf.executing_eagerly():
        ok, *values = small_precision_terms(scale, gram, columns, noise_variance)
        log_determinant, fit = checked(ok, values, [(), ()], message)
        return log_determinant, fit

    @tf.custom_gradient
    def terms(*inputs: tf.Tensor) -> Any:
        ok, log_determinant, fit, upper, half = _in_python(_terms, inputs, 5)
        outputs = checked(ok, [log_determinant, fit], [(), ()], message)

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor | None]:
            def closed_form(*tensors: tf.Tensor) -> list[tf.Tensor]:
                function = partial(_gradients, gram_gradient=gram_gradient)
                arguments = (*tensors, upper, half)
                gradients = _in_python(function, arguments, 4 if gram_gradient else 3)
                like = [inputs[0], *inputs[2:], inputs[1]]
                return [tf.reshape(g, tf.shape(t)) for g, t in zip(gradients, like, strict=False)]

            to_scale, *others = once(closed_form, (*inputs, *upstream))
            to_columns, to_noise, *to_gram = others
            return [to_scale, to_gram[0] if gram_gradient else None, to_columns, to_noise]

        return tuple(outputs), gradient

    log_determinant, fit = terms(scale, gram, columns, noise_variance)
    return log_determinant, fit


def precision_root(
    scale: tf.Tensor, gram: tf.Tensor, columns: tf.Tensor, noise_variance: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """``B^{-1} D columns / s`` ``[M, P]`` and the Cholesky factor ``[M, M]`` of ``B^{-1}``.

    ``B = I + D G D / s``. The arguments are those of :func:`precision_terms`, but ``gram`` always
    has a gradient.
    """

    @tf.custom_gradient
    def mean_and_root(*inputs: tf.Tensor) -> Any:
        ok, *values = _in_python(_mean_and_root, inputs, 3)
        size, num_columns = columns.shape
        outputs = checked(ok, values, [(size, num_columns), (size, size)], _NOT_FACTORISED)

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
            return once(_gradients_through_root, (*inputs, *outputs, *upstream))

        return tuple(outputs), gradient

    mean, root = mean_and_root(scale, gram, columns, noise_variance)
    return mean, root


def precision_mean(
    scale: tf.Tensor, gram: tf.Tensor, columns: tf.Tensor, noise_variance: tf.Tensor
) -> Array:
    """``B^{-1} D columns / s``, ``[M, P]``, as an array, by one factorisation.

    :raises tf.errors.InvalidArgumentError: If B is finite and cannot be factorised.
    """
    arrays = (np.asarray(part) for part in (scale, gram, columns, noise_variance))
    ok, _, _, upper, half = _terms(*arrays)
    if not ok:
        raise tf.errors.InvalidArgumentError(None, None, _NOT_FACTORISED)
    mean: Array = lapack.solve(upper, half)
    return mean


def _terms(scale: Array, gram: Array, columns: Array, noise: Array) -> tuple[Array, ...]:
    """The status of B (0.0 if B is finite and has no factor, else 1.0); the two terms; U with
    ``B = U^T U``; and ``U^{-T} D columns / s``, whose squares add up to the fit."""
    with np.errstate(all="ignore"):
        upper, failed_at = lapack.factorise(scale / np.sqrt(noise), gram)
        log_determinant = 2 * np.sum(np.log(np.diagonal(upper)))
        if failed_at or not np.isfinite(log_determinant):
            np.fill_diagonal(upper, np.nan)
            nan = np.asarray(np.nan)
            return _not_finite(scale, gram, noise), nan, nan, upper, np.full_like(columns, np.nan)
        half = lapack.solve(upper, scale[:, None] * columns / noise, adjoint=True)
    fit = np.sum(np.square(half))
    return np.asarray(1.0), np.asarray(log_determinant), np.asarray(fit), upper, half


def _mean_and_root(scale: Array, gram: Array, columns: Array, noise: Array) -> tuple[Array, ...]:
    """The status of B, and the two results of :func:`precision_root`.

    In reversed order ``B = U^T U``. The inverse of U, in the original order, is the Cholesky factor
    of ``B^{-1}``: no matrix is inverted before it is factorised.
    """
    with np.errstate(all="ignore"):
        upper, failed_at = lapack.factorise(scale / np.sqrt(noise), gram, backwards=True)
        if failed_at:
            nan = np.full_like(columns, np.nan)
            return _not_finite(scale, gram, noise), nan, np.full_like(upper, np.nan)
        lapack.invert(upper)
        root = lapack.turned(upper)
        mean = root @ (root.T @ (scale[:, None] * columns / noise))
    return np.asarray(1.0), mean, root


def _not_finite(scale: Array, gram: Array, noise: Array) -> Array:
    """The status of a B without a factor: 1.0 if B is not finite, else 0.0."""
    size = len(scale)
    diagonal = np.diagonal(gram)[:size] * np.square(scale) / noise
    finite = np.all(np.isfinite(diagonal)) and np.all(np.isfinite(gram[:size, :size]))
    return np.asarray(0.0 if finite else 1.0)


def _gradients(
    scale: Array,
    gram: Array,
    columns: Array,
    noise: Array,
    to_log_determinant: Array,
    to_fit: Array,
    upper: Array,
    half: Array,
    *,
    gram_gradient: bool,
) -> tuple[Array, ...]:
    """The gradients with respect to scale, columns and noise variance; if required, also with
    respect to gram, from the whole B^{-1}."""
    with np.errstate(all="ignore"):
        inverse = lapack.copied(upper)
        lapack.invert(inverse)
        solved = lapack.solve(upper, half)  # B^{-1} D columns / s
        if gram_gradient:
            lapack.multiply_by_adjoint(inverse)
            variances = np.diagonal(inverse).copy()
        else:
            variances = lapack.square_lengths(inverse)  # the diagonal of B^{-1}
        squares = np.sum(np.square(solved), axis=1)
        slopes = to_log_determinant * (1 - variances) + to_fit * squares
        to_scale = np.divide(2 * slopes, scale, out=np.zeros_like(scale), where=scale != 0)
        scaled = scale[:, None] * solved / noise
        fit_slope = to_fit * (np.sum(columns * scaled) + np.sum(squares))
        to_noise = -(to_log_determinant * np.sum(1 - variances) + fit_slope) / noise
        gradients = to_scale, 2 * to_fit * scaled, np.asarray(to_noise)
        if not gram_gradient:
            return gradients
        to_gram = lapack.mirrored(inverse, len(gram))
        block = to_gram[: len(scale), : len(scale)]
        block *= to_log_determinant
        block -= to_fit * solved @ solved.T
        block *= scale
        block *= scale[:, None] / noise
        return (*gradients, to_gram)


def _gradients_through_root(
    scale: tf.Tensor,
    gram: tf.Tensor,
    columns: tf.Tensor,
    noise: tf.Tensor,
    mean: tf.Tensor,
    root: tf.Tensor,
    to_mean: tf.Tensor,
    to_root: tf.Tensor,
) -> list[tf.Tensor]:
    """The gradients with respect to scale, gram, columns and noise variance. (For the factor see
    Murray 2016, "Differentiation of the Cholesky decomposition", section 3.1.)"""
    size = tf.shape(scale)[0]
    middle = tf.linalg.band_part(tf.matmul(root, to_root, transpose_a=True), -1, 0)
    middle = tf.linalg.set_diag(middle, tf.linalg.diag_part(middle) / 2)
    solved = tf.matmul(root, tf.matmul(root, to_mean, transpose_a=True))
    to_precision = tf.matmul(root, tf.matmul(middle, root, transpose_b=True))
    to_precision = -to_precision - tf.matmul(solved, mean, transpose_b=True)
    to_precision = (to_precision + tf.linalg.matrix_transpose(to_precision)) / 2
    products = tf.linalg.matvec(to_precision * gram[:size, :size], scale) / noise
    from_columns = tf.reduce_sum(columns * solved, axis=1) / noise
    to_scale = 2 * products + from_columns
    to_noise = -tf.reduce_sum(scale * (products + from_columns)) / noise
    after = tf.shape(gram)[0] - size
    to_block = to_precision * scale * scale[:, None] / noise
    to_gram = tf.pad(to_block, [[0, after], [0, after]])
    return [to_scale, to_gram, scale[:, None] * solved / noise, to_noise]


def _in_python(
    function: Callable[..., tuple[Array, ...]], inputs: Sequence[Any], number: int
) -> list[Any]:
    """The results of a function of the inputs' values: tensors in a graph; outside of a graph,
    arrays, which are not copied."""
    if tf.executing_eagerly():
        return list(function(*(np.asarray(value) for value in inputs)))
    return list(numpy_function(function, inputs, [tf.float64] * number, stateful=False))


def checked(
    ok: Any, values: Sequence[Any], shapes: Sequence[Sequence[Any]], message: str | None
) -> list[tf.Tensor]:
    """The values as tensors of the given shapes.

    :param ok: 1.0 if the values are valid, else 0.0.
    :param message: The text of the error; None for no error.
    :raises tf.errors.InvalidArgumentError: If the values are not valid; in a graph, when it runs.
    """
    if tf.executing_eagerly():
        if message is not None and not ok:
            raise tf.errors.InvalidArgumentError(None, None, message)
        return [tf.convert_to_tensor(value) for value in values]
    asserted = [] if message is None else [tf.debugging.Assert(tf.equal(ok, 1.0), [message])]
    with tf.control_dependencies(asserted):
        outputs = [tf.identity(value) for value in values]
    return [tf.ensure_shape(value, shape) for value, shape in zip(outputs, shapes, strict=True)]
