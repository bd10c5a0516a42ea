"""The mean function of a :class:`interdomain.models.VecchiaSGPR` by generalised least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from gpflow.mean_functions import Constant, Linear

from ..._arguments import Array
from .model import VecchiaSGPR


def solve_mean(model: VecchiaSGPR, *, by_rows: bool = False) -> None:
    """Set the weights of a constant or linear mean function to those of highest evidence, at the
    present values of all other parameters. All other mean functions stay as they are, and so does
    a mean function with a parameter that is not trainable or has a prior.

    The sums run over whitened rows with targets ``t = (y, h)``, where h are the columns of the
    mean. With ``S = sum t t^T - C^T (Kuu + G)^{-1} C`` and the products C of features and targets,
    the weights are ``S_hh^{-1} S_hy``.

    :param by_rows: Use least squares of the merged rows, before other parameters are trained.
    """
    mean, outputs = model.mean_function, model.num_latent_gps
    if type(mean) not in (Linear, Constant):
        return
    parts = [mean.A, mean.b] if type(mean) is Linear else [mean.c]
    if any(not part.trainable or part.prior is not None for part in parts):
        return
    if by_rows:
        X, Y = model.ordered.merged.X, model.ordered.merged.Y
        columns = np.concatenate([X, np.ones_like(X[:, :1])], axis=1)[:, -_count(mean, X) :]
        weights = np.linalg.lstsq(np.float64(columns), np.float64(Y), rcond=None)[0]
    else:
        S, reference = model.residual_sums()
        weights = np.linalg.lstsq(S[outputs:, outputs:], S[outputs:, :outputs], rcond=None)[0]
        weights[-1] += reference
    if type(mean) is Linear:
        mean.A.assign(_as_shape(weights[:-1], mean.A))
        mean.b.assign(_as_shape(weights[-1], mean.b))
    else:
        mean.c.assign(_as_shape(weights[-1], mean.c))


def _count(mean: Any, X: Array) -> int:
    return X.shape[1] + 1 if type(mean) is Linear else 1


def _as_shape(weights: Array, parameter: Any) -> Array:
    """The weights of all outputs in the shape of a parameter; their mean, if outputs share one."""
    size = int(np.prod(parameter.shape))
    if size == weights.size:
        return np.reshape(weights, parameter.shape)
    return np.reshape(np.mean(weights, axis=-1), parameter.shape)
