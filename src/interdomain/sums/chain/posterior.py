"""Predictions and posterior functions of models of space and time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import tensorflow as tf

from ..._tracing import compiled
from ...core.functionals import Places
from ...linalg.chain import Chain
from ..sparse_posterior import SparsePosterior

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
    """The quadratic form by products of matrices, for all rows of a window of splines together. It
    has all derivatives with respect to the features."""
    keys = first * chain.copies if group is None else first * chain.copies + group
    found: tf.Tensor = _forms(tf.stop_gradient(blocks), keys, features)
    return found


@tf.custom_gradient
def _forms(blocks: tf.Tensor, keys: tf.Tensor, features: tf.Tensor) -> Any:
    def gradient(upstream: tf.Tensor) -> Any:
        copies = tf.repeat(features[:, None], int(blocks.shape[0]), axis=1)
        products = _products(blocks, keys, copies)
        return None, None, 2 * tf.einsum("nl,nlqm->nqm", upstream, products)

    return _over_windows("forms", blocks, keys, features), gradient


@tf.custom_gradient
def _products(blocks: tf.Tensor, keys: tf.Tensor, parts: tf.Tensor) -> Any:
    """The products of blocks with parts of each row, ``[n, L, q, m]``; the blocks are symmetric."""

    def gradient(upstream: tf.Tensor) -> Any:
        return None, None, _products(blocks, keys, upstream)

    return _over_windows("products", blocks, keys, parts), gradient


def _over_windows(method: str, blocks: tf.Tensor, keys: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """The results of a method of :class:`_Windows` for all rows. Eagerly, operations of a loop over
    windows would take most of the time; so the loop is compiled."""
    function: Any = partial(_loop, method)
    if tf.executing_eagerly():
        function = _compiled_loop(method, tuple(blocks.shape), tuple(values.shape[1:]))
    found: tf.Tensor = function(blocks, keys, values)
    return found


@lru_cache(maxsize=8)
def _compiled_loop(method: str, shape: tuple[int, ...], of_row: tuple[int, ...]) -> Any:
    blocks, keys = tf.TensorSpec(shape, tf.float64), tf.TensorSpec([None], tf.int64)
    values = tf.TensorSpec([None, *of_row], tf.float64)
    return compiled(partial(_loop, method), input_signature=[blocks, keys, values])


def _loop(method: str, blocks: tf.Tensor, keys: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    windows = _Windows(blocks, keys, int(values.shape[-2]))
    return windows.over(values, getattr(windows, method))


class _Windows:
    """The rows of each window of q splines, and the blocks of the window.

    :param blocks: ``[L, N, p + 1, g, m, m]``.
    :param keys: The number of the first spline of each row times the number g of groups, plus the
        number of the group, ``[n]``.
    :param window: q.
    """

    def __init__(self, blocks: tf.Tensor, keys: tf.Tensor, window: int) -> None:
        self._blocks, self._window = blocks, window
        self._order = tf.argsort(keys, stable=True)
        self._keys, _, counts = tf.unique_with_counts(tf.gather(keys, self._order))
        self._ends = tf.concat([[0], tf.cumsum(counts)], axis=0)

    def over(self, values: tf.Tensor, function: Callable[..., tf.Tensor]) -> tf.Tensor:
        """The results of a function of values of rows, for the rows of each window together."""
        ordered, size = tf.gather(values, self._order), tf.size(self._keys)
        shape = [None, *function(ordered[:0], self._keys[:0]).shape[1:]]

        def of_window(number: tf.Tensor) -> tf.Tensor:
            rows = ordered[self._ends[number] : self._ends[number + 1]]
            return function(rows, self._keys[number : number + 1])

        found = tf.TensorArray(values.dtype, size, element_shape=shape, infer_shape=False)
        _, found = tf.while_loop(
            lambda number, _: number < size,
            lambda number, array: (number + 1, array.write(number, of_window(number))),
            [tf.constant(0), found],
        )
        inverse = tf.math.invert_permutation(self._order)
        return tf.gather(tf.ensure_shape(found.concat(), shape), inverse)

    def forms(self, rows: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
        """The quadratic forms of features ``[r, q, m]``, ``[r, L]``."""
        total: list[Any] = [0.0] * int(self._blocks.shape[0])
        for d, blocks in self._diagonals(key):
            later, earlier = rows[:, d:], rows[:, : self._window - d]
            for latent, chosen in enumerate(tf.unstack(blocks)):
                products = tf.einsum("raj,ajk->rak", later, chosen)
                form = tf.reduce_sum(products * earlier, axis=[1, 2])
                total[latent] += form if d == 0 else 2 * form
        return tf.stack(total, axis=1)

    def products(self, rows: tf.Tensor, key: tf.Tensor) -> tf.Tensor:
        """The products of the blocks with parts ``[r, L, q, m]``, in the same shape."""
        total = tf.zeros_like(rows)
        for d, blocks in self._diagonals(key):
            later, earlier = rows[:, :, d:], rows[:, :, : self._window - d]
            added = tf.einsum("lajk,rlak->rlaj", blocks, earlier)
            total += tf.pad(added, [[0, 0], [0, 0], [d, 0], [0, 0]])
            if d:
                added = tf.einsum("lajk,rlaj->rlak", blocks, later)
                total += tf.pad(added, [[0, 0], [0, 0], [0, d], [0, 0]])
        return total

    def _diagonals(self, key: tf.Tensor) -> Iterator[tuple[int, tf.Tensor]]:
        """The blocks of a window's splines with the splines d before them, ``[L, q - d, m,
        m]``."""
        latents, _, length, copies, width, _ = map(int, self._blocks.shape)
        node, copy = tf.reduce_sum(key) // copies, tf.reduce_sum(key) % copies
        for d in range(min(self._window, length)):
            chosen = self._blocks[:, node + d : node + self._window, d, copy]
            yield d, tf.ensure_shape(chosen, [latents, self._window - d, width, width])
