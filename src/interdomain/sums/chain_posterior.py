"""Predictions and posterior functions of models of space and time."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ..core.functionals import Places
from ..linalg.chain import Chain
from .sparse_posterior import SparsePosterior

_FEW = 256
"""The largest number of entries of the inverse that are gathered for each row."""


class ChainPosterior(SparsePosterior):
    """The posterior of space and time: see :class:`.SparsePosterior`."""

    def _of_sparse(
        self, tensors: tuple[tf.Tensor, ...], X: tf.Tensor, *, with_variance: bool
    ) -> tf.Tensor:
        means, blocks, borders, _ = tensors
        structure, (latents, size, count) = self._sums.structure, map(int, borders.shape)
        chain: Chain = structure.chain
        by_node = tf.reshape(means[:size], [-1, chain.width, means.shape[1]])

        def of_kind(parts: Any, places: Places) -> tf.Tensor:
            first, features, group = structure.windows(parts, places)
            nodes = structure.nodes_of(first, group, features.shape[1])
            found = [tf.einsum("nqm,nqmp->np", features, tf.gather(by_node, nodes))]
            if with_variance:
                of_row = _by_row if np.prod(features.shape[1:]) ** 2 <= _FEW else _by_window
                found.append(of_row(chain, blocks, first, group, features))
                if count:
                    by_place = tf.reshape(borders, [latents, -1, chain.width, count])
                    chosen = tf.gather(by_place, nodes, axis=1)
                    products = tf.einsum("nqm,lnqme->nle", features, chosen)
                    found.append(tf.reshape(products, [-1, latents * count]))
            return tf.concat(found, axis=1)

        return structure.by_kind(X, of_kind)


def _by_row(
    chain: Chain, blocks: tf.Tensor, first: tf.Tensor, group: tf.Tensor | None, features: tf.Tensor
) -> tf.Tensor:
    """The quadratic form of blocks ``[L, N, p + 1, g, m, m]`` at rows, ``[n, L]``, from the entries
    for each row."""
    some, others = np.tril_indices(features.shape[1])
    steps = (some * (chain.reach + 1) + some - others) * chain.copies
    places = first[:, None] * (chain.reach + 1) * chain.copies + steps
    places = places if group is None else places + group[:, None]
    flat = tf.reshape(blocks, [blocks.shape[0], -1, chain.width, chain.width])
    chosen = tf.gather(flat, places, axis=1)
    one, other = (tf.gather(features, part, axis=1) for part in (some, others))
    twice = tf.constant(np.where(some == others, 1.0, 2.0))
    return tf.einsum("p,npj,lnpjk,npk->nl", twice, one, chosen, other)


def _by_window(
    chain: Chain, blocks: tf.Tensor, first: tf.Tensor, group: tf.Tensor | None, features: tf.Tensor
) -> tf.Tensor:
    """The same by products of matrices, for all rows of a window of splines together."""
    latents, window = int(blocks.shape[0]), int(features.shape[1])
    keys = first * chain.copies if group is None else first * chain.copies + group
    order = tf.argsort(keys, stable=True)
    keys, ordered = tf.gather(keys, order), tf.gather(features, order)
    distinct, _, counts = tf.unique_with_counts(keys)
    ends = tf.cumsum(counts)

    def of_window(number: tf.Tensor) -> tf.Tensor:
        rows = ordered[ends[number] - counts[number] : ends[number]]
        node, copy = distinct[number] // chain.copies, distinct[number] % chain.copies
        total = [tf.zeros_like(rows[:, 0, 0])] * latents
        for d in range(min(window, chain.reach + 1)):
            later, earlier = rows[:, d:], rows[:, : window - d]
            for latent in range(latents):
                chosen = blocks[latent, node + d : node + window, d, copy]
                products = tf.einsum(
                    "raj,ajk->rak",
                    later,
                    tf.ensure_shape(chosen, [window - d, chain.width, chain.width]),
                )
                form = tf.reduce_sum(products * earlier, axis=[1, 2])
                total[latent] += form if d == 0 else 2 * form
        return tf.stack(total, axis=1)

    found = tf.TensorArray(
        features.dtype, tf.size(distinct), element_shape=[None, latents], infer_shape=False
    )
    _, found = tf.while_loop(
        lambda number, _: number < tf.size(distinct),
        lambda number, array: (number + 1, array.write(number, of_window(number))),
        [tf.constant(0), found],
    )
    return tf.gather(tf.ensure_shape(found.concat(), [None, latents]), tf.argsort(order))
