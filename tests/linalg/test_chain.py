"""Block-banded matrices: factors, inverses and terms of a bound against dense matrices."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from interdomain.linalg.chain import Chain, ChainFactor
from interdomain.linalg.chain_terms import chain_terms
from interdomain.linalg.stencil_factors import NotFactorised

RNG = np.random.default_rng(0)
SIZES = [(7, 1, 1, 3, 0), (9, 2, 1, 2, 3), (11, 3, 4, 2, 2), (40, 2, 5, 1, 1), (4, 2, 1, 33, 2)]
CHAINS = [Chain(*sizes) for sizes in SIZES]


def parts_of(chain: Chain) -> list[Any]:
    """Blocks, border and corner of a symmetric matrix, and a band that makes it definite."""
    blocks = 0.3 * RNG.normal(size=chain.shapes[0])
    blocks[:, 0] += blocks[:, 0].swapaxes(-1, -2)
    for d in range(1, chain.reach + 1):
        blocks[:d, d] = 0.0
    band = np.zeros(chain.band_shape)
    band[:, 0] = 4.0 * chain.width + 4.0
    for d in range(1, chain.reach + 1):
        band[d:, d] = 0.1 * RNG.normal(size=band[d:, d].shape)
    return [blocks, 0.2 * RNG.normal(size=chain.shapes[1]), 9 * np.eye(chain.others), band]


def place_of(chain: Chain, node: int, copy: int) -> slice:
    start = (node * chain.copies + copy) * chain.width
    return slice(start, start + chain.width)


def dense_of(chain: Chain, blocks: Any, border: Any, corner: Any) -> Any:
    """The whole matrix, filled block by block, of arrays."""
    matrix = np.zeros([chain.num_weights] * 2)
    for node, d, copy in np.ndindex(chain.nodes, chain.reach + 1, chain.copies):
        if d <= node:
            here, there = place_of(chain, node, copy), place_of(chain, node - d, copy)
            matrix[here, there] = blocks[node, d, copy]
            matrix[there, here] = blocks[node, d, copy].T
    return np.block([[matrix, border], [border.T, corner]])


def with_band(blocks: Any, band: Any, scale: float, matrix: Any = None) -> Any:
    if matrix is not None:
        blocks = matrix @ blocks @ matrix.T
    return scale * blocks + band[..., None] * np.eye(band.shape[-1])


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("whitened", [False, True])
def test_factor(chain: Chain, whitened: bool) -> None:
    blocks, border, corner, band = parts_of(chain)
    matrix = np.eye(chain.width) + 0.1 * RNG.normal(size=[chain.width] * 2) if whitened else None
    factor = ChainFactor(chain, band, corner, blocks, border, 0.7, matrix)
    dense = dense_of(chain, with_band(blocks, band, 0.7, matrix), border, corner)
    inverse, columns = np.linalg.inv(dense), RNG.normal(size=[len(dense), 3])
    np.testing.assert_allclose(2 * factor.log_determinant(), np.linalg.slogdet(dense)[1])
    solved = factor.solve(factor.solve(columns), adjoint=True)
    np.testing.assert_allclose(solved, inverse @ columns, atol=1e-12)
    size = chain.num_weights
    alone = dense_of(chain, blocks, border, corner)[:size, :size]
    products = chain.matmul(blocks, columns[:size])
    np.testing.assert_allclose(products, alone @ columns[:size], atol=1e-12)
    np.testing.assert_allclose(chain.dense(blocks), alone, atol=1e-14)
    found = factor.inverse_blocks()
    for node, d, copy in np.ndindex(chain.nodes, chain.reach + 1, chain.copies):
        if d <= node:
            expected = inverse[place_of(chain, node, copy), place_of(chain, node - d, copy)]
            np.testing.assert_allclose(found[node, d, copy], expected, atol=1e-13)
        else:
            assert not np.any(found[node, d])
    np.testing.assert_array_equal(factor.inverse_band(), np.diagonal(found, axis1=3, axis2=4))
    found_border, found_corner = factor.inverse_border()
    np.testing.assert_allclose(found_border, inverse[:size, size:], atol=1e-13)
    np.testing.assert_allclose(found_corner, inverse[size:, size:], atol=1e-13)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diag(inverse), atol=1e-13)
    sums = chain.band_of_products(columns[:size])
    products = columns[:size] @ columns[:size].T
    for node, d, copy in np.ndindex(chain.nodes, chain.reach + 1, chain.copies):
        if d <= node:
            block = products[place_of(chain, node, copy), place_of(chain, node - d, copy)]
            np.testing.assert_allclose(sums[node, d, copy], np.diag(block), atol=1e-13)


@pytest.mark.parametrize("chain", CHAINS[:4])
def test_terms(chain: Chain) -> None:
    """Values and all gradients by differences of dense matrices."""
    blocks, border, gram_corner, band = parts_of(chain)
    corner, noise = 2.0 * np.eye(chain.others), np.array(0.6)
    matrix = np.eye(chain.width) + 0.1 * RNG.normal(size=[chain.width] * 2)
    columns = RNG.normal(size=[chain.num_weights + chain.others, 2])
    inputs = [band, corner, blocks, border, gram_corner, columns, noise, matrix]
    weights = 0.7, -1.3  # of the two terms

    def dense(band: Any, corner: Any, *rest: Any) -> float:
        blocks, border, gram_corner, columns, noise, matrix = rest
        whole = with_band(blocks, band, 1 / noise, matrix)
        matrix = dense_of(chain, whole, border / noise, corner + gram_corner / noise)
        fit = np.sum(columns * np.linalg.solve(matrix, columns)) / noise**2
        return float(weights[0] * np.linalg.slogdet(matrix)[1] + weights[1] * fit)

    def terms(*tensors: tf.Tensor) -> tf.Tensor:
        band, corner, blocks, border, gram_corner, columns, noise, matrix = tensors
        gram = blocks, border, gram_corner
        options = {"matrix": matrix, "gram_gradient": True}
        found = chain_terms(chain, band, corner, gram, columns, noise, **options)
        return weights[0] * found[0] + weights[1] * found[1]

    tensors = [tf.constant(part) for part in inputs]
    for function in (terms, tf.function(terms, autograph=False)):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        gradients = tape.gradient(value, tensors)
        np.testing.assert_allclose(value, dense(*inputs), rtol=1e-11)
    step = 1e-5
    for number, (part, gradient) in enumerate(zip(inputs, gradients, strict=True)):
        direction = RNG.normal(size=np.shape(part))
        if number in (1, 4):  # symmetric matrices
            direction = direction + direction.T
        if number in (0, 2):
            for d in range(1, chain.reach + 1):
                direction[:d, d] = 0.0
        if number == 2:
            direction[:, 0] += direction[:, 0].swapaxes(-1, -2)
        ends = []
        for sign in (1, -1):
            moved = list(inputs)
            moved[number] = part + sign * step * direction
            ends.append(dense(*moved))
        expected = (ends[0] - ends[1]) / (2 * step)
        found = np.sum(gradient.numpy() * direction)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=str(number))


def test_not_definite() -> None:
    chain = CHAINS[1]
    blocks, border, corner, band = parts_of(chain)
    for wrong in ((-band, corner), (band, -corner)):
        with pytest.raises(NotFactorised):
            ChainFactor(chain, *wrong, blocks, border)
    columns = np.ones([chain.num_weights + chain.others, 1])
    parts = [tf.constant(part) for part in (-band, corner, columns)]
    gram = [tf.constant(part) for part in (blocks, border, corner)]
    noise = tf.constant(0.5, tf.float64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cholesky decomposition was not"):
        chain_terms(chain, *parts[:2], gram, parts[2], noise)
    found = chain_terms(chain, *parts[:2], gram, parts[2], noise, refuse=False)
    assert np.all(np.isnan(found))
