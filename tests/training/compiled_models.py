"""Models of this library of which a fit compiles something, for two columns of inputs."""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np

from interdomain.inducing_variables import SphericalHarmonics, SumInducingVariables
from interdomain.kernels import SphericalMatern32
from interdomain.models import AdditiveSVGP, OrthogonalSVGP

Data = tuple[np.ndarray, np.ndarray]


def harmonics_svgp(data: Data, likelihood: Any = None, **options: Any) -> gpflow.models.SVGP:
    kernel = SphericalMatern32(weight_variances=[0.8, 1.3])
    harmonics = SphericalHarmonics.for_kernel(kernel, 2, max_degree=2)
    likelihood = likelihood or gpflow.likelihoods.Gaussian()
    return gpflow.models.SVGP(kernel, likelihood, harmonics, num_data=len(data[0]), **options)


def additive_svgp(data: Data, likelihood: Any = None) -> AdditiveSVGP:
    kernels = [SphericalMatern32(), gpflow.kernels.Matern32()]
    blocks = [
        SphericalHarmonics.for_kernel(kernels[0], 2, max_degree=1),
        gpflow.inducing_variables.InducingPoints(data[0][:3].copy()),
    ]
    return AdditiveSVGP(
        kernels[0] + kernels[1],
        likelihood or gpflow.likelihoods.Gaussian(),
        SumInducingVariables(blocks),
        num_data=len(data[0]),
    )


def orthogonal_svgp(data: Data, likelihood: Any = None) -> OrthogonalSVGP:
    kernel = SphericalMatern32()
    return OrthogonalSVGP(
        kernel,
        likelihood or gpflow.likelihoods.Gaussian(),
        SphericalHarmonics.for_kernel(kernel, 2, max_degree=1),
        gpflow.inducing_variables.InducingPoints(data[0][:3].copy()),
        num_data=len(data[0]),
    )


MINIBATCHES: dict[str, Any] = {"batch_size": 10, "steps": 3}
