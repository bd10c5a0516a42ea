"""Functions of every kind of model have the mean and the covariance that it predicts."""

from collections.abc import Callable
from typing import Any

import gpflow
import numpy as np
import pytest
from gpflow.inducing_variables import InducingPoints
from gpflow.kernels import LinearCoregionalization, Matern32, Matern52, SharedIndependent
from gpflow.likelihoods import Gaussian

import interdomain as idm
from interdomain.inducing_variables import (
    SeparateIndependentInducingVariables,
    SharedIndependentInducingVariables,
    SphericalHarmonics,
    SumInducingVariables,
)
from interdomain.sampling import sample_functions
from tests.conformance.helpers import moved

from .moments import NUM_SAMPLES, assert_moments

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(30, 2))
Y = np.sin(3 * X[:, :1]) + 0.1 * rng.normal(size=(30, 1))
YY = np.concatenate([Y, X[:, :1] * X[:, 1:]], axis=1)
Z = X[:8]
AT = np.array([[0.2, -0.3], [0.9, 0.4], [-1.5, 2.0]])
MEAN = gpflow.mean_functions.Linear(np.array([[0.3], [-0.2]]), [0.5])


def zonal() -> tuple[Any, Any]:
    """A kernel and harmonics of few degrees, of which the features leave some out."""
    smooth = idm.kernels.SphericalMatern32(weight_variances=[1.0, 0.6])
    kernel = idm.kernels.FreeSpectrum.from_kernel(smooth, input_dim=2, max_degree=4)
    return kernel, SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=2)


def svgp(kernel: Any, features: Any, num_latents: int = 1, **options: Any) -> gpflow.models.SVGP:
    model = gpflow.models.SVGP(
        kernel, Gaussian(0.1), features, num_latent_gps=num_latents, **options
    )
    return moved(model)


def points(**options: Any) -> gpflow.models.SVGP:
    return svgp(Matern52(lengthscales=0.8), InducingPoints(Z), mean_function=MEAN, **options)


def mixed() -> LinearCoregionalization:
    kernels = [Matern32(lengthscales=0.7), Matern52(variance=0.8)]
    return LinearCoregionalization(kernels, W=np.array([[1.0, 0.2], [-0.4, 0.9], [0.3, 0.6]]))


def separate() -> gpflow.models.SVGP:
    """An SVGP with features of two classes, in an order of their own."""
    matern, (kernel, harmonics) = Matern32(lengthscales=0.7), zonal()
    kernel = gpflow.kernels.SeparateIndependent([matern, kernel, matern])
    point = InducingPoints(X[: int(harmonics.num_inducing)])
    features = SeparateIndependentInducingVariables([point, harmonics, point])
    return svgp(kernel, features, 3)


def orthogonal(*, base_of_points: bool = False, **arguments: Any) -> idm.models.OrthogonalSVGP:
    kernel, base = zonal()
    if base_of_points:
        base = InducingPoints(X[8:14])
    model = idm.models.OrthogonalSVGP(
        kernel, Gaussian(0.1), base, InducingPoints(Z), mean_function=MEAN, **arguments
    )
    return moved(model)


def additive(**arguments: Any) -> idm.models.AdditiveSVGP:
    kernel, harmonics = zonal()
    kernel = kernel + Matern32(lengthscales=0.5) + gpflow.kernels.Constant(0.3)
    blocks = SumInducingVariables([harmonics, InducingPoints(Z), None])
    return moved(idm.models.AdditiveSVGP(kernel, Gaussian(0.1), blocks, **arguments))


def rotated() -> idm.models.HVGP:
    rotation = idm.transforms.Rotation(3)
    return moved(idm.models.HVGP(Matern52(), Gaussian(0.1), Z[:4], rotation))


def finite_rank() -> tuple[Any, Any]:
    kernel, harmonics = zonal()
    return idm.kernels.FiniteRank(kernel, harmonics), harmonics


def some_of_finite_rank() -> idm.models.StructuredSGPR:
    """The model has some of the features that the prior has."""
    kernel = idm.kernels.SphericalMatern32()
    harmonics = SphericalHarmonics.for_kernel(kernel, input_dim=2, max_degree=4)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    return idm.models.StructuredSGPR((X, Y), prior, SphericalHarmonics(3, [0, 1, 2]))


def varying_noise() -> gpflow.models.SGPR:
    noise = gpflow.functions.Linear(A=[[0.1], [0.0]], b=0.4)
    likelihood = Gaussian(scale=noise)
    return gpflow.models.SGPR((X, Y), Matern52(), InducingPoints(Z), likelihood=likelihood)


MODELS: dict[str, Callable[[], Any]] = {
    "svgp": points,
    "svgp-diagonal": lambda: points(q_diag=True, whiten=False),
    "svgp-bare": lambda: svgp(SharedIndependent(zonal()[0], 2), zonal()[1], 2),
    "svgp-mixed": lambda: svgp(mixed(), SharedIndependentInducingVariables(InducingPoints(Z)), 2),
    "svgp-separate": separate,
    "additive": additive,
    "hvgp": rotated,
    "orthogonal": orthogonal,
    "orthogonal-unwhitened": lambda: orthogonal(whiten=False),
    "orthogonal-points": lambda: orthogonal(base_of_points=True),
    "odvgp": lambda: orthogonal(variant="odvgp"),
    "structured-sgpr": lambda: idm.models.StructuredSGPR((X, YY), *zonal(), noise_variance=0.05),
    "finite-rank": lambda: idm.models.StructuredSGPR((X, Y), *finite_rank(), noise_variance=0.05),
    "some-of-finite-rank": some_of_finite_rank,
    "points-of-finite-rank": lambda: svgp(finite_rank()[0], InducingPoints(Z[:6])),
    "gpr": lambda: gpflow.models.GPR((X, Y), Matern52(), MEAN, noise_variance=0.05),
    "sgpr": lambda: gpflow.models.SGPR((X, YY), Matern52(), InducingPoints(Z), noise_variance=0.1),
    "sgpr-harmonics": lambda: gpflow.models.SGPR((X, Y), *zonal(), noise_variance=0.1),
    "sgpr-varying-noise": varying_noise,
    "vgp": lambda: moved(gpflow.models.VGP((X, Y), Matern32(lengthscales=0.6), Gaussian(0.1))),
}


OF_POSTERIORS = ("svgp-mixed", "additive", "orthogonal", "structured-sgpr", "gpr", "sgpr", "vgp")
"""The models whose posterior is passed."""


@pytest.mark.parametrize("name", MODELS)
def test_moments_are_those_that_the_model_predicts(name: str) -> None:
    model = MODELS[name]()
    source = model.posterior() if name in OF_POSTERIORS else model
    functions = sample_functions(source, NUM_SAMPLES, num_features=6, seed=1)
    assert_moments(functions, AT, *model.predict_f(AT, full_cov=True))


def test_outputs_of_one_mixed_model_go_together() -> None:
    """Their covariance, which the moments of each output do not show."""
    model = MODELS["svgp-mixed"]()
    functions = sample_functions(model, NUM_SAMPLES, num_features=6)
    mean, cov = model.predict_f(AT[:1], full_cov=False, full_output_cov=True)
    values = functions(AT[:1]).numpy()[:, 0] - mean.numpy()
    products = values[:, :, None] * values[:, None, :]
    errors = np.std(products, axis=0) / np.sqrt(NUM_SAMPLES)
    assert np.all(np.abs(np.mean(products, axis=0) - cov[0]) < 5 * errors)


def test_other_models_are_refused() -> None:
    near = idm.models.VecchiaSGPR((X, Y), local_kernel=Matern32(), num_neighbours=3)
    message = "of interdomain.models other than VecchiaSGPR, .* found VecchiaSGPR; .*predict_f_s"
    with pytest.raises(ValueError, match=message):
        sample_functions(near, 2)
    assert near.predict_f_samples(AT, 4).shape == (4, len(AT), 1)  # as the message says
    for model in (None, gpflow.models.GPRFITC((X, Y), Matern32(), Z)):
        with pytest.raises(ValueError, match="model must be an SVGP.*predict_f_samples"):
            sample_functions(model, 2)
