"""A start for minibatches: the optimal q of a regression model on some rows, in closed form."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
import scipy.linalg
import tensorflow as tf
from gpflow.covariances import Kuf

from .._arguments import instance, integer
from ..covariances import Kuu_operator
from ..kernels._parameters import single_output
from ..linalg import Root
from ..linalg.precision import precision_root
from ..models._gaussian import check_closed_form
from ..regression.bound import root_of
from ..sphere._typing import Array
from .data import checked_arrays
from .validation import check_columns

_BATCH = 1_000
"""Rows whose features are computed at a time."""


def start_at_optimum(
    model: gpflow.models.SVGP, data: Any, *, subset_size: int = 5_000, seed: int = 0
) -> None:
    """
    Set q of a ``gpflow.models.SVGP`` for regression to the optimum for a subset of its rows.

    With the whitened features ``Phi`` ``[M, n]`` of n rows and their noise variances s this is
    ``N(m, B^{-1})`` with ``B = I + Phi diag(1 / s) Phi^T`` and ``m = B^{-1} Phi ((Y - mean) / s)``
    (Titsias 2009, eq. 10). A diagonal q has the same mean, and the variances ``1 / diag(B)``. For a
    diagonal q the linear system is solved in the smaller of the sizes M and n, so that with
    features that have a diagonal Kuu, such as harmonics, M can be ten thousand or more. :func:`fit`
    then starts where minibatches would arrive only after many steps. The parameters of the kernel,
    the features and the likelihood are not changed.

    If ``subset_size`` is at least the number of rows, q is the optimum for all of them.

    >>> import gpflow, numpy as np, interdomain as idm
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> data = X, np.sin(6 * X)
    >>> model = gpflow.models.SVGP(
    ...     gpflow.kernels.Matern52(lengthscales=0.3),
    ...     gpflow.likelihoods.Gaussian(0.01),
    ...     X[::5].copy(),
    ... )
    >>> idm.training.start_at_optimum(model, data)
    >>> exact = gpflow.models.SGPR(data, model.kernel, X[::5].copy(), noise_variance=0.01)
    >>> bool(abs(model.elbo(data) - exact.elbo()) < 1e-3)
    True

    :param model: whitened or not, with a full or a diagonal q and any number of outputs that share
        a kernel; its ``q_mu`` and ``q_sqrt`` are set.
    :param data: X ``[N, D]`` and Y ``[N, P]``.
    :param subset_size: the number n of rows to draw, without replacement; all rows, if there are
        fewer. Their features take ``8 M n`` bytes.
    :param seed: the seed for drawing the rows.
    :raises ValueError: for a model of another class, a kernel of several outputs, a likelihood with
        other densities than GPflow's Gaussian or whose noise differs between the columns of Y, or
        data that are not finite or do not fit the model.
    """
    instance("model", model, gpflow.models.SVGP, "a gpflow.models.SVGP")
    single_output("model.kernel", model.kernel, "give each output a model of its own")
    check_closed_form("model.likelihood", model.likelihood)
    X, Y = checked_arrays(data, model.likelihood)
    check_columns(model, [X.shape[1], Y.shape[1]])
    subset_size = integer("subset_size", subset_size, at_least=1)
    if len(X) > subset_size:
        chosen = np.sort(np.random.default_rng(seed).permutation(len(X))[:subset_size])
        X, Y = X[chosen], Y[chosen]
    dtype = gpflow.default_float()
    X, Y = X.astype(dtype, copy=False), Y.astype(dtype, copy=False)
    jitter = gpflow.default_jitter()
    root = root_of(Kuu_operator(model.inducing_variable, model.kernel, jitter=jitter))
    noise = np.asarray(model.likelihood.conditional_variance(X, np.zeros_like(Y)), np.float64)
    if np.any(noise != noise[:, :1]):
        raise ValueError(
            "model.likelihood: its noise differs between the columns of Y; give each column a "
            "model of its own."
        )
    scale = 1 / np.sqrt(noise[:, :1])
    phi = _whitened_features(model, root, X) * scale[:, 0]
    errors = (Y - np.asarray(model.mean_function(X), np.float64)) * scale
    shape = tuple(model.q_sqrt.shape)
    if len(shape) == 2:
        mean, roots = _mean(phi, errors), _deviations(model, root, phi)[:, None]
    else:
        ones, one = tf.ones([len(phi)], tf.float64), tf.ones([], tf.float64)
        mean, lower = precision_root(ones, phi @ phi.T, phi @ errors, one)
        roots = _coordinates(model, root, lower)
    model.q_mu.assign(_coordinates(model, root, mean).astype(dtype))
    model.q_sqrt.assign(np.broadcast_to(roots, shape).astype(dtype))


def _whitened_features(model: gpflow.models.SVGP, root: Root, X: Array) -> Array:
    """``R^{-1} Kuf``, ``[M, n]``, in float64."""
    batches = (X[i : i + _BATCH] for i in range(0, len(X), _BATCH))
    parts = (Kuf(model.inducing_variable, model.kernel, batch) for batch in batches)
    return np.concatenate([np.asarray(root.solve(tf.cast(p, tf.float64))) for p in parts], axis=1)


def _mean(phi: Array, errors: Array) -> Array:
    """``(I + phi phi^T)^{-1} phi errors``, by the smaller of the two systems."""
    if phi.shape[0] <= phi.shape[1]:
        return np.asarray(_solve(phi @ phi.T, phi @ errors))
    return np.asarray(phi @ _solve(phi.T @ phi, errors))


def _solve(gram: Array, columns: Array) -> Array:
    """``(I + gram)^{-1} columns``; gram is overwritten."""
    gram[np.diag_indices(len(gram))] += 1
    return np.asarray(scipy.linalg.solve(gram, columns, assume_a="pos", overwrite_a=True))


def _coordinates(model: gpflow.models.SVGP, root: Root, columns: Array | tf.Tensor) -> Array:
    """Of whitened columns, in the variables of the model."""
    return np.asarray(columns if model.whiten else root.matmul(tf.convert_to_tensor(columns)))


def _deviations(model: gpflow.models.SVGP, root: Root, phi: Array) -> Array:
    """Of a diagonal q, ``[M]``."""
    precision = np.ones(len(phi))
    if not model.whiten:
        precision = np.asarray(root.inverse_diagonal())
        phi = np.asarray(root.solve(tf.constant(phi), adjoint=True))
    return np.asarray(1 / np.sqrt(precision + np.einsum("mn,mn->m", phi, phi)))
