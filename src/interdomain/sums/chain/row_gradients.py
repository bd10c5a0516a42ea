"""Sums over rows of products of splines of time and features of space, with gradients.

A TensorFlow operation whose values and gradients are computed by NumPy, by the methods of
:mod:`interdomain.sums.chain.rows`: no tensor has the size of a row's features times themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import tensorflow as tf

from ..._arguments import Array
from ..._tracing import numpy_function
from ...linalg.chain import Chain
from .rows import (
    RowFeatures,
    add_products,
    method_of,
    node_numbers,
    pairs_of,
    place_table,
    products_with,
    spline_table,
    windows_of,
)


def row_sums(
    chain: Chain, rows: RowFeatures, weights: tf.Tensor, columns: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The sums ``sum_n w_n phi_n phi_n^T`` as blocks ``[N, p + 1, g, m, m]``, and ``sum_n phi_n
    c_n^T``, ``[N g m, C]``.

    They have gradients with respect to the features of space and to the columns.

    :param rows: The features of rows, as tensors.
    :param weights: ``[n]``.
    :param columns: ``[n, C]``.
    """
    splines, space = zip(*rows.parts, strict=True)
    known = [rows.first, rows.place, rows.group, weights, *splines]
    shapes = chain.shapes[0], (chain.num_weights, columns.shape[1])

    def split(arrays: tuple[Any, ...]) -> tuple[RowFeatures, Array, Array]:
        first, place, group, weights, *rest = arrays
        parts = rest[: len(splines)], rest[len(splines) + 1 :]
        features = RowFeatures(first, list(zip(*parts, strict=True)), place, group)
        return features, weights, rest[len(splines)]

    def values(*arrays: Array) -> list[Array]:
        features, weights, columns = split(arrays)
        gram = np.zeros(chain.shapes[0])
        add_products(chain, [gram], features, weights[:, None])
        return [gram, products_with(chain, features, columns)]

    def slopes(to_gram: Array, to_products: Array, *arrays: Array) -> list[Array]:
        features, weights, columns = split(arrays)
        to_columns, to_space = _of_products(chain, to_products, features, columns)
        for total, part in zip(to_space, _of_gram(chain, to_gram, features, weights), strict=True):
            total += part
        return [to_columns, *to_space]

    @tf.custom_gradient
    def sums(columns: tf.Tensor, *space: tf.Tensor) -> Any:
        inputs = [*known, columns, *space]
        found = numpy_function(values, inputs, [tf.float64] * 2, stateful=False)

        def gradient(*upstream: tf.Tensor) -> list[tf.Tensor]:
            types = [tf.float64] * (1 + len(space))
            parts = numpy_function(slopes, [*upstream, *inputs], types, stateful=False)
            pairs = zip(parts, (columns, *space), strict=True)
            return [tf.ensure_shape(part, like.shape) for part, like in pairs]

        return tuple(map(tf.ensure_shape, found, shapes)), gradient

    blocks, products = sums(columns, *space)
    return blocks, products


def _of_products(
    chain: Chain, slopes: Array, rows: RowFeatures, columns: Array
) -> tuple[Array, list[Array]]:
    """The gradient of ``sum(slopes * products_with(...))`` with respect to columns, ``[n, C]``, and
    to the features of space of each part, ``[S, m]``."""
    by_node = slopes.reshape(-1, chain.width, columns.shape[1])
    to_columns, to_space = np.zeros(columns.shape), []
    for splines, features in rows.parts:
        to_features = np.zeros(features.shape)
        numbers = node_numbers(chain, rows, splines.shape[1]).ravel()
        ends = splines.shape[1] * np.arange(len(splines) + 1)
        shape = len(splines), len(by_node)
        windows = scipy.sparse.csr_matrix((splines.ravel(), numbers, ends), shape)
        of_rows = features[rows.place]
        for number, column in enumerate(columns.T):
            of_nodes = np.ascontiguousarray(by_node[:, :, number])
            to_features += spline_table(chain, rows, splines, column).T @ of_nodes
            to_columns[:, number] += np.einsum("nm,nm->n", windows @ of_nodes, of_rows)
        to_space.append(to_features)
    return to_columns, to_space


def _of_gram(chain: Chain, slopes: Array, rows: RowFeatures, weights: Array) -> list[Array]:
    """The gradient of ``sum(slopes * gram)`` with respect to the features of space of each part,
    ``[S, m]``."""
    if not len(rows.first):
        return [np.zeros(features.shape) for _, features in rows.parts]
    method = method_of(chain, rows)
    if method == "places":
        return [_by_place(chain, slopes, rows, weights)]
    if method == "entries":
        found = [_by_entry(chain, slopes, rows, weights)]
    else:
        found = _by_window(chain, slopes, rows, weights)
    count, places = len(rows.place), len(rows.parts[0][1])
    entries = np.ones(count), (rows.place, np.arange(count))
    sums = scipy.sparse.csr_matrix(entries, (places, count))
    return [sums @ part for part in found]


def _by_place(chain: Chain, slopes: Array, rows: RowFeatures, weights: Array) -> Array:
    """The gradient by the table of places, ``[S, m]``."""
    features, width = rows.parts[0][1], chain.width
    total = np.zeros([len(features), width**2])
    for d, part in enumerate(place_table(chain, rows, weights)):
        total += part.T @ slopes[:, d, 0].reshape(-1, width**2)
    matrices = total.reshape(-1, width, width)
    symmetric = matrices + matrices.swapaxes(1, 2)
    return np.asarray(np.einsum("sjk,sk->sj", symmetric, features))


def _by_entry(chain: Chain, slopes: Array, rows: RowFeatures, weights: Array) -> Array:
    """The gradient with respect to the features of each row, ``[n, m]``, entry by entry."""
    ((splines, by_place),) = rows.parts
    features = by_place[rows.place].T
    found = np.zeros(features.shape)
    for a, b in pairs_of(splines.shape[1]):
        weighted = splines[:, a] * splines[:, b] * weights
        entries = slopes[rows.first + a, a - b, rows.group]
        for j, k in np.ndindex(chain.width, chain.width):
            values = weighted * entries[:, j, k]
            found[j] += values * features[k]
            found[k] += values * features[j]
    return found.T


def _by_window(chain: Chain, slopes: Array, rows: RowFeatures, weights: Array) -> list[Array]:
    """The gradient with respect to the features of each row and part, ``[n, m]``, by products of
    matrices."""
    window, width = rows.parts[0][0].shape[1], chain.width
    found = [np.zeros([len(rows.first), width]) for _ in rows.parts]
    matrix = np.empty([window, width, window, width])
    for first, group, some, features in windows_of(chain, rows):
        for a, b in pairs_of(window):
            block = slopes[first + a, a - b, group]
            matrix[a, :, b] = block
            matrix[b, :, a] = block + block.T if a == b else block.T
        weighted = features * weights[some, None]
        product = weighted @ matrix.reshape(window * width, -1)
        for part, (splines, _) in zip(found, rows.parts, strict=True):
            part[some] = np.einsum("kq,kqm->km", splines[some], product.reshape(-1, window, width))
    return found
