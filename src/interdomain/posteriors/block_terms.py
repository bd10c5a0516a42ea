"""What the blocks of a sum of GPs contribute to its posterior, with an independent q(u) for each.

Every block t has its own q_t(u_t), so the mean and the covariance of f are sums over the blocks:

    mean = sum_t A_t^T E[v_t],    cov = Kff + sum_t A_t^T (Cov[v_t] - I) A_t,

with the whitened variables ``v_t = L_t^{-1} u_t`` and features ``A_t = L_t^{-1} Kuf_t``,
``Kuu_t = L_t L_t^T`` (Sun et al. 2021, eq. 21). Kff is that of the whole kernel: the parts' own are
never needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import gpflow
import tensorflow as tf
from gpflow.base import TensorType
from gpflow.config import default_jitter
from gpflow.inducing_variables import InducingVariables
from gpflow.kernels import Kernel
from gpflow.utilities import triangular

from ..covariances.blocks import BlockBatch, block_batches
from ..covariances.pairs import flat_blocks
from ..devices import pinned
from .gaussian import (
    is_diagonal,
    kl_divergence,
    log_determinant_of_whitened,
    square_root,
)
from .quadratic_forms import covariance_change, dense_marginals, mean_of_blocks, variance_change


class Terms(NamedTuple):
    """What blocks contribute: to the mean ``[N, P]``, to the (co)variance (``[N, P]`` or
    ``[P, N, N]``, to be added to Kff), and to the KL divergence ``[]``."""

    mean: tf.Tensor
    change: tf.Tensor
    kl: tf.Tensor


class WhitenedBatch(NamedTuple):
    """q of a batch of T blocks in terms of variables whose prior is N(0, I).

    ``root`` is L ``[T, m, m]``, None where it is not needed; ``q_mu`` ``[T, m, P]``; ``q_sqrt``
    ``[T, m, P]`` (diagonal) or ``[T, P, m, m]``; ``log_determinant``, that of all S, is there if
    whitening left no triangle of q_sqrt.
    """

    root: tf.linalg.LinearOperator | None
    q_mu: tf.Tensor
    q_sqrt: tf.Tensor
    log_determinant: tf.Tensor | None = None


def whitened_batch(
    batch: BlockBatch,
    q_mu: Sequence[TensorType],
    q_sqrt: Sequence[TensorType],
    whiten: bool,
    needs_root: bool = True,
) -> WhitenedBatch:
    """The q of the blocks of a batch, picked from the lists for all blocks."""
    mean = stack([q_mu[position] for position in batch.positions])
    root_of_s = stack([q_sqrt[position] for position in batch.positions])
    root, log_determinant = None, None
    if needs_root or not whiten:
        root = square_root(batch.operator(default_jitter()))
    if not whiten:
        assert root is not None
        log_determinant = log_determinant_of_whitened(root, mean, root_of_s)
        mean = root.solve(mean)
        if root_of_s.shape.rank == 3 and is_diagonal(root):
            root_of_s = root.solve(root_of_s)
        else:
            if root_of_s.shape.rank == 3:
                root_of_s = tf.linalg.diag(tf.linalg.matrix_transpose(root_of_s))
            # The roots of the P latent GPs side by side: one solve for all.
            shape = tf.shape(root_of_s)
            wide = tf.reshape(tf.transpose(root_of_s, [0, 2, 1, 3]), [shape[0], shape[2], -1])
            solved = tf.reshape(root.solve(wide), [shape[0], shape[2], shape[1], shape[3]])
            root_of_s = tf.transpose(solved, [0, 2, 1, 3])
    return WhitenedBatch(root, mean, root_of_s, log_determinant)


def stack(values: Sequence[TensorType]) -> tf.Tensor:
    """Values or parameters of equal shape, one behind the other.

    Parameters that are triangular are filled in one go, so that a graph has one operation for each
    (its reading) and not twenty.
    """
    if len(values) > 1 and all(_is_triangular(value) for value in values):
        packed = tf.stack([value.unconstrained_variable for value in values])
        return triangular().forward(packed)
    tensors = [tf.convert_to_tensor(value) for value in values]
    stacked = tf.stack(tensors)
    return stacked if stacked.shape.rank == 3 else tf.linalg.band_part(stacked, -1, 0)


def _is_triangular(value: TensorType) -> bool:
    return isinstance(value, gpflow.Parameter) and isinstance(value.transform, type(triangular()))


def batch_kl(q: WhitenedBatch) -> tf.Tensor:
    """The KL divergence of all blocks of a batch, their latent GPs taken side by side."""
    q_mu = tf.reshape(tf.transpose(q.q_mu, [1, 0, 2]), [tf.shape(q.q_mu)[1], -1])
    if q.q_sqrt.shape.rank == 3:
        q_sqrt = tf.reshape(tf.transpose(q.q_sqrt, [1, 0, 2]), tf.shape(q_mu))
    else:
        size = tf.shape(q.q_sqrt)[-1]
        q_sqrt = tf.reshape(q.q_sqrt, [-1, size, size])
    return kl_divergence(q_mu, q_sqrt, None, q.log_determinant)


def batch_terms(
    batch: BlockBatch, q: WhitenedBatch, X: TensorType, full_cov: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """A batch's contributions to the mean and to the (co)variance at X ``[N, D]``."""
    assert q.root is not None
    columns = batch.features(X)
    is_triangular = isinstance(q.root, tf.linalg.LinearOperatorLowerTriangular)
    if is_triangular and not (full_cov or q.q_sqrt.shape.rank == 3):
        return dense_marginals(q.root.to_dense(), columns, q.q_mu, q.q_sqrt)
    A = q.root.solve(columns)
    change = covariance_change if full_cov else variance_change
    return mean_of_blocks(A, q.q_mu), change(A, q.q_sqrt)


def additive_terms(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    q_mu: Sequence[TensorType],
    q_sqrt: Sequence[TensorType],
    X: TensorType,
    *,
    whiten: bool,
    full_cov: bool = False,
    devices: Sequence[str] | None = None,
) -> Terms:
    """The contributions of all blocks, with one factorisation of each Kuu.

    :param inducing_variable: Of a sum; or of a single block.
    :param kernel: The kernel it belongs to.
    :param q_mu: For each block ``[m_t, P]``.
    :param q_sqrt: For each block ``[m_t, P]`` or ``[P, m_t, m_t]``.
    :param X: ``[N, D]``.
    :param devices: Where the blocks are computed, in turn; all in batches, and nowhere in
        particular, by default.
    """
    if devices is None:
        parts = []
        for batch in block_batches(inducing_variable, kernel):
            q = whitened_batch(batch, q_mu, q_sqrt, whiten)
            parts.append(Terms(*batch_terms(batch, q, X, full_cov), batch_kl(q)))
    else:
        parts = [
            _terms_on_device(block, summand, q_mu[t], q_sqrt[t], X, whiten, full_cov, device)
            for t, (block, summand, device) in enumerate(
                _with_devices(inducing_variable, kernel, devices)
            )
        ]
    means, changes, kls = zip(*parts, strict=True)
    return Terms(tf.add_n(means), tf.add_n(changes), tf.add_n(kls))


def additive_kl(
    inducing_variable: InducingVariables,
    kernel: Kernel,
    q_mu: Sequence[TensorType],
    q_sqrt: Sequence[TensorType],
    *,
    whiten: bool,
    devices: Sequence[str] | None = None,
) -> tf.Tensor:
    """``sum_t KL[q_t(u_t) || p(u_t)]``; arguments as for :func:`additive_terms`."""
    if devices is None:
        return tf.add_n(
            [
                batch_kl(whitened_batch(batch, q_mu, q_sqrt, whiten, needs_root=False))
                for batch in block_batches(inducing_variable, kernel)
            ]
        )
    parts = []
    for t, (block, summand, device) in enumerate(_with_devices(inducing_variable, kernel, devices)):
        mean, root = [q_mu[t]], [q_sqrt[t]]

        def of_block(
            block: InducingVariables = block,
            summand: Kernel = summand,
            mean: Sequence[TensorType] = mean,
            root: Sequence[TensorType] = root,
        ) -> tuple[tf.Tensor, ...]:
            (batch,) = block_batches(block, summand)
            return (batch_kl(whitened_batch(batch, mean, root, whiten, needs_root=False)),)

        parts.append(pinned(of_block, device)[0])
    return tf.add_n(parts)


def _with_devices(
    inducing_variable: InducingVariables, kernel: Kernel, devices: Sequence[str]
) -> list[tuple[InducingVariables, Kernel, str]]:
    return [
        (block, summand, devices[t % len(devices)])
        for t, (block, summand) in enumerate(flat_blocks(inducing_variable, kernel))
    ]


def _terms_on_device(
    block: InducingVariables,
    summand: Kernel,
    q_mu: TensorType,
    q_sqrt: TensorType,
    X: TensorType,
    whiten: bool,
    full_cov: bool,
    device: str,
) -> Terms:
    def of_block(inputs: tf.Tensor) -> tuple[tf.Tensor, ...]:
        (batch,) = block_batches(block, summand)
        q = whitened_batch(batch, [q_mu], [q_sqrt], whiten)
        return (*batch_terms(batch, q, inputs, full_cov), batch_kl(q))

    return Terms(*pinned(of_block, device, X))


def add_variance(kff: tf.Tensor, change: tf.Tensor) -> tf.Tensor:
    """Prior variances of any shape and a change ``[N, P]``; never negative."""
    # What all features together do not explain is not negative; rounding can make it so.
    return tf.maximum(tf.reshape(kff, [-1, 1]) + change, 0)
