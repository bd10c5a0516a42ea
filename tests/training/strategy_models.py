"""Models and data for fits under a strategy, and how far what they learn is apart."""

from typing import Any

import gpflow
import numpy as np

from interdomain.kernels import SphericalMatern32
from interdomain.models import StructuredSGPR
from tests.parts import with_harmonics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(101, 2))
Y = np.sin(2 * X[:, :1]) + 0.1 * RNG.normal(size=(101, 1))

Arrays = list[np.ndarray]


def stirred(model: Any) -> Any:
    """Away from the prior, where some gradients are zero."""
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(variable.numpy() + 0.1 * rng.normal(size=variable.shape))
    return model


def svgp(q_diag: bool = False) -> Any:
    """An SVGP of points, traced in half the time; or with a diagonal q of harmonics."""
    kernel, features = gpflow.kernels.Matern32(lengthscales=[1.0, 1.0]), X[:9].copy()
    if q_diag:
        kernel, features = with_harmonics(SphericalMatern32(weight_variances=np.ones(2)), 1)
    likelihood = gpflow.likelihoods.Gaussian(0.2)
    return stirred(gpflow.models.SVGP(kernel, likelihood, features, num_data=len(X), q_diag=q_diag))


def regression(data: Any, scale: float = 0.7) -> Any:
    """With features whose parameters are frozen: of rows, or of statistics."""
    parts = with_harmonics(SphericalMatern32(weight_variances=np.full(2, scale)), 3, fixed=True)
    return StructuredSGPR(data, *parts, noise_variance=0.1, batch_size=16, progress=False)


def unconstrained(model: Any) -> Arrays:
    return [variable.numpy() for variable in model.trainable_variables]


def moves(model: Any, start: Arrays) -> Arrays:
    """The changes of the unconstrained parameters by training: after one step of gradient descent
    the gradients, times the learning rate."""
    return [now - before for now, before in zip(unconstrained(model), start, strict=True)]


def difference(ours: Any, theirs: Any) -> float:
    """The largest, relative to the largest number of each array; none of which may be all zero."""
    assert all(np.any(b) for b in theirs)
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.max(np.abs(np.subtract(a, b))) / np.max(np.abs(b))) for a, b in pairs)
