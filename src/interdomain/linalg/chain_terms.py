"""The terms of a bound for a block-banded precision ``P = K + G / s``, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .._arguments import Array
from .._tracing import numpy_function
from .chain import Chain, ChainFactor
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
    :param gram_gradient: Whether the terms have derivatives with respect to G.
    :param refuse: Whether a finite P without a factor is an error; if False, both terms are NaN.
    :raises tf.errors.InvalidArgumentError: If P is finite and cannot be factorised. If P is not
        finite, both terms are NaN.
    """
    inputs = (band, corner, columns, noise_variance, *(gram if gram_gradient else ()))
    size = chain.num_weights

    def compute(*arrays: Array) -> list[Array]:
        return _terms(chain, *arrays, with_gram=gram_gradient)

    @tf.custom_gradient
    def terms(*inputs: tf.Tensor) -> Any:
        types = [tf.float64] * (9 if gram_gradient else 7)
        ok, *found = numpy_function(compute, [*inputs[:4], *gram], types, stateful=False)
        log_determinant, fit, solved, *bands = found
        values = checked(ok, [log_determinant, fit], [(), ()], NOT_FACTORISED if refuse else None)
        solved = tf.ensure_shape(solved, columns.shape)

        def gradient(to_determinant: tf.Tensor, to_fit: tf.Tensor) -> list[tf.Tensor]:
            noise = inputs[3]
            to_band = to_determinant * bands[0] - to_fit * bands[1]
            nodes, others = solved[:size], solved[size:]
            products = tf.matmul(others, others, transpose_b=True)
            to_corner = to_determinant * bands[2] - to_fit * products
            # G / s is P - K: the traces of G's gradients follow from those of K's.
            traces = tf.reduce_sum(to_band * inputs[0]) + tf.reduce_sum(to_corner * inputs[1])
            weights = to_determinant * float(size + chain.others) + to_fit * fit
            totals = [to_band, to_corner, 2 * to_fit * solved / noise, (traces - weights) / noise]
            if gram_gradient:
                shape = [chain.nodes, chain.copies, chain.width, -1]
                blocks = to_determinant * bands[3]
                blocks -= to_fit * _products(chain, tf.reshape(nodes, shape))
                border = to_determinant * bands[4]
                border -= 2 * to_fit * tf.matmul(nodes, others, transpose_b=True)
                totals += [part / noise for part in (blocks, border, to_corner)]
            pairs = zip(totals, inputs, strict=True)
            return [tf.ensure_shape(total, part.shape) for total, part in pairs]

        return tuple(values), gradient

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
    blocks: Array,
    border: Array,
    gram_corner: Array,
    *,
    with_gram: bool,
) -> list[Array]:
    """The status of P, the two terms, ``P^{-1} columns / s``, and of ``P^{-1}`` the band and the
    corner, with the band of the products of the solution; if ``with_gram``, blocks and border of
    ``P^{-1}``, too. Entries that P has twice are doubled. The status is 0.0 if P is finite and has
    no factor, else 1.0."""
    with np.errstate(all="ignore"):
        inverse_noise = float(1 / noise)
        whole = corner + gram_corner * inverse_noise
    parts = (band, whole, border, columns, np.array(inverse_noise))
    finite = all(np.all(np.isfinite(part)) for part in parts) and bool(np.isfinite(np.sum(blocks)))
    try:
        factor = ChainFactor(chain, band, whole, blocks, border, inverse_noise) if finite else None
    except NotFactorised:
        factor = None
    if factor is None:
        nan = [np.full_like(part, np.nan) for part in (columns, band, band, corner)]
        nan += [np.full_like(part, np.nan) for part in (blocks, border)] * with_gram
        return [np.array(0.0 if finite else 1.0), *[np.array(np.nan)] * 2, *nan]
    solved = factor.solve(factor.solve(columns * inverse_noise), adjoint=True)
    inverse_border, inverse_corner = factor.inverse_border()
    rest = []
    if with_gram:
        inverse_blocks = factor.inverse_blocks()
        inverse_band = np.diagonal(inverse_blocks, axis1=3, axis2=4).copy()
        inverse_blocks[:, 1:] *= 2
        rest = [inverse_blocks, 2 * inverse_border]
    else:
        inverse_band = factor.inverse_band()
    bands = [inverse_band, chain.band_of_products(solved[: chain.num_weights])]
    for part in bands:
        part[:, 1:] *= 2
    fit = np.sum(columns * solved) * inverse_noise
    values = np.array(1.0), np.array(2 * factor.log_determinant()), np.asarray(fit)
    return [*values, solved, *bands, inverse_corner, *rest]
