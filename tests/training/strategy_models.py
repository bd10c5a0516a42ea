"""Models and data for fits under a strategy, and how far two models are apart."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np

import interdomain as idm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(101, 2))
Y = np.sin(2 * X[:, :1]) + 0.1 * RNG.normal(size=(101, 1))


def svgp() -> gpflow.models.SVGP:
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(2))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 3)
    return gpflow.models.SVGP(kernel, gpflow.likelihoods.Gaussian(0.2), harmonics, num_data=len(X))


def hvgp() -> idm.models.HVGP:
    return idm.models.HVGP(
        gpflow.kernels.Matern32(),
        gpflow.likelihoods.Gaussian(0.2),
        np.array([[0.9, 0.2], [0.4, -0.8], [-1.1, 1.5]]),
        [idm.transforms.Negation(0)],
        num_data=len(X),
    )


def orthogonal() -> idm.models.OrthogonalSVGP:
    kernel = idm.kernels.SphericalMatern32(weight_variances=np.ones(2))
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 2, 2)
    points = gpflow.inducing_variables.InducingPoints(X[:4].copy())
    return idm.models.OrthogonalSVGP(
        kernel, gpflow.likelihoods.Gaussian(0.2), harmonics, points, num_data=len(X)
    )


MODELS: dict[str, Callable[[], Any]] = {"svgp": svgp, "hvgp": hvgp, "orthogonal": orthogonal}


def difference(model: Any, other: Any) -> float:
    """The largest, relative to each parameter's largest number."""
    return max(
        float(np.max(np.abs(a.numpy() - b.numpy())) / np.max(np.abs(b.numpy())))
        for a, b in zip(model.parameters, other.parameters, strict=True)
    )
