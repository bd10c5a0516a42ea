"""A check that a kernel is invariant to a transformation of its inputs."""

from __future__ import annotations

import gpflow
import numpy as np
import tensorflow as tf
from gpflow.kernels import Kernel

from ..._arguments import Array
from .transforms.base import CyclicTransform

_TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-2}
_PER_COLUMN = ("lengthscales", "weight_variances", "variance")
"""Parameters that may have one entry for each column."""

_NUM_PROBES = 48
_DISTANCES = 10.0 ** np.arange(-3.0, 4.0)
"""Distances from a probe to its partners; for any lengthscale, at least one is short."""


def validate_invariance(kernel: Kernel, transform: CyclicTransform, group: CyclicTransform) -> None:
    """Check on random points that ``k(G x, G x') = k(x, x')`` (Sun et al. 2021, eq. 9).

    :param transform: The transformation G.
    :param group: The product that contains G; random points are drawn from its domain.
    :raises ValueError: If the transformation changes the correlation of a pair of points, or the
        kernel cannot be evaluated on the domain of the transformation.
    """
    columns = num_columns(kernel, group)
    with tf.init_scope():
        # Probes ``[n, D]``, and partners ``[n', D]`` near to the probes and far from them.
        probes, far = (group.probes(_NUM_PROBES, columns, seed=seed) for seed in (1, 3))
        directions = np.random.default_rng(2).standard_normal((len(_DISTANCES), *probes.shape))
        directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
        near = (probes + _DISTANCES[:, None, None] * directions).reshape(-1, columns)
        both = probes, np.concatenate([near, far])
        X, X2 = (tf.constant(points, gpflow.default_float()) for points in both)
        try:
            before, scale = _correlations(kernel, X, X2)
            after, _ = _correlations(kernel, transform(X), transform(X2))
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            raise ValueError(
                f"base_kernel cannot be evaluated on inputs of {columns} columns, which "
                f"{transform!r} acts on: {error}"
            ) from error
    difference = float(np.max(np.abs(before - after) / scale, initial=0.0))
    tolerance = _TOLERANCE[before.dtype]
    if not difference <= tolerance:
        remedy = (
            "Pass transformations that keep distances (for stationary kernels) or inner products "
            "about the origin (for Linear, Polynomial and arc-cosine kernels); a Translation needs "
            "a kernel that is periodic with its period."
        )
        if _length(kernel, "lengthscales") > 1:
            remedy = (
                "Its lengthscales differ from column to column: pass a single lengthscale (a "
                "scalar), or transformations along the columns, such as Negation(dims)."
            )
        raise ValueError(
            f"base_kernel ({type(kernel).__name__}) is not invariant to {transform!r}: the "
            f"correlation of two points changes by {difference:.2g} when both are transformed. "
            f"{remedy}"
        )


def num_columns(kernel: Kernel, transform: CyclicTransform) -> int:
    """A number of columns that both the transformation and the kernel accept."""
    if transform.input_dim is not None:
        return transform.input_dim
    needed = [2, transform.min_input_dim]
    for part in [kernel, *(m for m in kernel.submodules if isinstance(m, Kernel))]:
        dims = part.active_dims
        if not isinstance(dims, slice):
            needed.append(int(np.max(dims)) + 1)
        elif (dims.stop or 0) > 0:
            needed.append(dims.stop)
        else:
            needed += [_length(part, name) for name in _PER_COLUMN]
    return max(needed)


def _length(kernel: Kernel, name: str) -> int:
    """The number of entries of a kernel's parameter; 0 for a scalar or a missing parameter."""
    shape = np.shape(getattr(kernel, name, 0.0))
    return int(shape[0]) if len(shape) else 0


def _correlations(kernel: Kernel, X: tf.Tensor, X2: tf.Tensor) -> tuple[Array, Array]:
    """The kernel's values, and the square roots of the products of the variances."""
    values = kernel(X, X2).numpy()
    scale = np.sqrt(np.outer(*(kernel(x, full_cov=False).numpy() for x in (X, X2))))
    return values, np.maximum(scale, np.finfo(values.dtype).tiny)
