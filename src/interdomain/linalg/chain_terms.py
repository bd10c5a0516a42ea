"""The terms of a bound for a block-banded precision ``P = K + G / s``, with their gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array
from .._tracing import numpy_function
from .chain import Chain, ChainFactor
from .chain_steps import both_sides, sum_of_products, times
from .precision import checked
from .stencil_factors import NotFactorised

NOT_FACTORISED = (
    "Cholesky decomposition was not successful: Kuu + Kuf Kfu / s, s being the noise variance, is "
    "not positive definite in float64; the splines of time are too narrow for such long "
    "lengthscales, or s is too small."
)


def chain_terms(
    chain: Chain,
    band: tf.Tensor,
    corner: tf.Tensor,
    gram: Sequence[tf.Tensor],
    columns: tf.Tensor,
    noise_variance: tf.Tensor,
    *,
    matrix: tf.Tensor | None = None,
    gram_gradient: bool = False,
    refuse: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """``log det P`` and ``|P^{-1/2} columns / s|^2`` for ``P = K + G / s``, all in float64.

    Both terms have first derivatives. They are computed with the values, and need only the entries
    of ``P^{-1}`` at the places of P's entries.

    :param band: The diagonals of K's blocks, ``[N, p + 1, g, m]``; their other entries are zero.
    :param corner: The corner of K, ``[E, E]``; its border is zero.
    :param gram: Blocks, border and corner of G: see :class:`.Chain`.
    :param columns: ``[N g m + E, K]``.
    :param noise_variance: s, ``[]``.
    :param matrix: A matrix W ``[m, m]``: the blocks of G are ``W B W^T`` for the given blocks B.
        None for the identity. Border and columns are not multiplied by W.
    :param gram_gradient: Whether the terms have derivatives with respect to the blocks. They always
        have derivatives with respect to all other tensors.
    :param refuse: Whether a finite P without a factor is an error; if False, both terms are NaN.
    :raises tf.errors.InvalidArgumentError: If P is finite and cannot be factorised. If P is not
        finite, both terms are NaN.
    """
    blocks, border, gram_corner = gram
    whitening = tf.eye(chain.width, dtype=tf.float64) if matrix is None else matrix
    size, has_matrix = chain.num_weights, matrix is not None

    def compute(*arrays: Array) -> list[Array]:
        return _terms(chain, *arrays, has_matrix=has_matrix, with_blocks=gram_gradient)

    @tf.custom_gradient
    def terms(*inputs: tf.Tensor) -> Any:
        types = [tf.float64] * (10 if gram_gradient else 9)
        ok, *found = numpy_function(compute, inputs, types, stateful=False)
        log_determinant, fit, solved, *derived = found
        values = checked(ok, [log_determinant, fit], [(), ()], NOT_FACTORISED if refuse else None)
        solved = tf.ensure_shape(solved, columns.shape)

        def gradient(to_determinant: tf.Tensor, to_fit: tf.Tensor) -> list[tf.Tensor | None]:
            own_band, own_corner, _, noise, *_ = inputs
            band, band_of_fit, corner, border, to_whitening, *blocks = derived
            to_band = to_determinant * band - to_fit * band_of_fit
            nodes, others = solved[:size], solved[size:]
            products = tf.matmul(others, others, transpose_b=True)
            to_corner = to_determinant * corner - to_fit * products
            # G / s is P - K: the traces of G's gradients follow from those of K's.
            traces = tf.reduce_sum(to_band * own_band) + tf.reduce_sum(to_corner * own_corner)
            weights = to_determinant * float(size + chain.others) + to_fit * fit
            to_noise = (traces - weights) / noise
            to_border = to_determinant * border
            to_border -= 2 * to_fit * tf.matmul(nodes, others, transpose_b=True)
            totals = [to_band, to_corner, 2 * to_fit * solved / noise, to_noise]
            totals += [to_border / noise, to_corner / noise]
            totals.append(to_determinant * to_whitening[0] - to_fit * to_whitening[1])
            if gram_gradient:
                mapped = tf.reshape(nodes, [chain.nodes, chain.copies, chain.width, -1])
                if has_matrix:
                    mapped = tf.matmul(inputs[6], mapped, transpose_a=True)
                to_blocks = to_determinant * blocks[0] - to_fit * _products(chain, mapped)
                totals.append(to_blocks / noise)
            pairs = zip(totals, inputs, strict=False)
            shaped = [tf.ensure_shape(total, part.shape) for total, part in pairs]
            return shaped if gram_gradient else [*shaped, None]

        return tuple(values), gradient

    inputs = band, corner, columns, noise_variance, border, gram_corner, whitening, blocks
    log_determinant, fit = terms(*inputs)
    return log_determinant, fit


def _products(chain: Chain, nodes: tf.Tensor) -> tf.Tensor:
    """The blocks of ``X X^T`` for X ``[N, g, m, K]``, those of two different nodes twice."""
    parts = []
    for d in range(chain.reach + 1):
        before = tf.pad(nodes, [[d, 0], [0, 0], [0, 0], [0, 0]])[: chain.nodes]
        factor = 2.0 if d else 1.0
        parts.append(factor * tf.matmul(nodes, before, transpose_b=True))
    return tf.stack(parts, axis=1)


def _terms(
    chain: Chain,
    band: Array,
    corner: Array,
    columns: Array,
    noise: Array,
    border: Array,
    gram_corner: Array,
    matrix: Array,
    blocks: Array,
    *,
    has_matrix: bool,
    with_blocks: bool,
) -> list[Array]:
    """The values and derivatives of :func:`chain_terms`. Entries that P has twice are doubled.

    :return: The status of P: 0.0 if P is finite and has no factor, else 1.0. The two terms. The
        solution ``x = P^{-1} columns / s``. The bands of ``P^{-1}`` and of ``x x^T``. The corner
        and the border of ``P^{-1}``. The derivatives by ``matrix`` of the log determinant, and
        minus those of the fit, ``[2, m, m]``. If ``with_blocks``, s times the derivative of the log
        determinant by ``blocks``.
    """
    whitening = matrix if has_matrix else None
    with np.errstate(all="ignore"):
        inverse_noise = float(1 / noise)
        whole = corner + gram_corner * inverse_noise
    parts = (band, whole, border, columns, matrix, np.array(inverse_noise))
    finite = all(np.all(np.isfinite(part)) for part in parts) and bool(np.isfinite(np.sum(blocks)))
    factor = None
    if finite:
        with contextlib.suppress(NotFactorised):
            options: dict[str, Any] = {"scale": inverse_noise, "matrix": whitening}
            factor = ChainFactor(chain, band, whole, blocks, inverse_noise * border, **options)
    if factor is None:
        like = [columns, band, band, corner, border, np.stack([matrix] * 2)]
        nan = [np.full_like(part, np.nan) for part in [*like, *[blocks] * with_blocks]]
        return [np.array(0.0 if finite else 1.0), *[np.array(np.nan)] * 2, *nan]
    solved = factor.solve(factor.solve(columns * inverse_noise), adjoint=True)
    inverse_border, inverse_corner = factor.inverse_border()
    found = _of_inverse(factor, blocks, whitening, with_blocks=with_blocks)
    inverse_band, to_matrix, *to_blocks = found
    nodes = solved[: chain.num_weights]
    bands = [inverse_band, chain.band_of_products(nodes)]
    for part in bands:
        part[:, 1:] *= 2
    of_fit = np.zeros_like(matrix)
    if has_matrix:
        by_node = nodes.reshape(-1, chain.width, nodes.shape[1])
        mapped = (matrix.T @ by_node).reshape(nodes.shape)
        products = chain.matmul(blocks, mapped).reshape(by_node.shape)
        of_fit = 2 * sum_of_products(by_node, products)
    to_whitening = np.stack([to_matrix, of_fit]) * inverse_noise
    fit = np.sum(columns * solved) * inverse_noise
    values = np.array(1.0), np.array(2 * factor.log_determinant()), np.asarray(fit)
    return [
        *values,
        solved,
        *bands,
        inverse_corner,
        2 * inverse_border,
        to_whitening,
        *to_blocks,
    ]


def _of_inverse(
    factor: ChainFactor, blocks: Array, matrix: Array | None, *, with_blocks: bool
) -> list[Array]:
    """The band of the inverse; the derivative of the log determinant by W, times s, ``[m, m]``; and
    if ``with_blocks``, that by B, times s."""
    chain = factor.chain
    band = np.empty(chain.band_shape)
    to_matrix = np.zeros([chain.width, chain.width])
    to_blocks = [np.empty_like(blocks)] * with_blocks
    for nodes, stack in factor.inverse_stacks():
        band[nodes] = np.diagonal(stack, axis1=3, axis2=4)
        if matrix is None and not with_blocks:
            continue
        stack[:, 1:] *= 2  # entries that P has twice
        if matrix is not None:
            gram = blocks[nodes]
            to_matrix += sum_of_products(stack, times(gram, matrix.T))
            halves = times(gram.swapaxes(-1, -2), matrix.T)
            to_matrix += sum_of_products(stack.swapaxes(-1, -2), halves)
            stack = both_sides(matrix.T, stack) if with_blocks else stack
        for part in to_blocks:
            part[nodes] = stack
    return [band, to_matrix, *to_blocks]
