"""The recipes of :func:`recommend`: functions that make a model as a user would write it.

A recipe makes a model of scaled rows. Its docstring says what the model is, when it is worth a try,
and its cost. Reports print the code that runs: :mod:`.programs` prints the source of a recipe, of
the functions of this file that it calls, and the imports.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from gpflow.base import AnyNDArray, TensorType
from gpflow.base import RegressionData as Data
from gpflow.kernels import Kernel, Matern32, Matern52
from gpflow.likelihoods import Likelihood
from gpflow.models import GPModel
from scipy.cluster.vq import kmeans2

import interdomain as idm


def known_noise(model: GPModel) -> GPModel:
    """The model with a fixed noise variance of one, which the noise weights of rows divide."""
    model.likelihood.variance.assign(1.0)
    gpflow.set_trainable(model.likelihood.variance, False)
    return model


def lengthscales(X: TensorType) -> AnyNDArray:
    """Initial lengthscales of standardised columns: about the distance between rows."""
    return np.full(X.shape[1], X.shape[1] ** 0.5)


def sums_over_rows(
    data: Data, kernel: Kernel, features: Any, likelihood: Likelihood | None
) -> GPModel:
    """A model of features alone: one pass over the rows for Gaussian noise, else several."""
    prior = idm.kernels.FiniteRank(kernel, features)
    if likelihood is None:
        return idm.models.StructuredSGPR(data, prior, features, noise_variance=0.1)
    return idm.models.DualSVGP(data, prior, likelihood, features)


def zonal_harmonics(X: TensorType, max_degree: int) -> tuple[Kernel, Any]:
    """A kernel of all columns together, and its spherical harmonics."""
    zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    harmonics = idm.inducing_variables.SphericalHarmonics
    return zonal, harmonics.for_kernel(zonal, X.shape[1], max_degree)


def exact(data: Data) -> GPModel:
    """An exact GP: so few rows need no approximation; O(N^3) a step."""
    return gpflow.models.GPR(data, Matern52(lengthscales=lengthscales(data[0])), noise_variance=0.1)


def all_rows(data: Data, likelihood: Likelihood, latents: int) -> GPModel:
    """GPflow's VGP, with a q of all rows: so few rows need no inducing points; O(N^3) a step."""
    kernel = Matern52(lengthscales=lengthscales(data[0]))
    return gpflow.models.VGP(data, kernel, likelihood, num_latent_gps=latents)


def points(data: Data, num_inducing: int, likelihood: Likelihood, latents: int) -> GPModel:
    """GPflow's SVGP with M inducing points, for any table; O(M^3) a step."""
    X = data[0]
    kernel = Matern52(lengthscales=lengthscales(X))
    Z, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    return gpflow.models.SVGP(kernel, likelihood, Z, num_latent_gps=latents, num_data=len(X))


def orthogonal_points(
    data: Data, num_inducing: int, likelihood: Likelihood, latents: int
) -> GPModel:
    """Inducing points, and points orthogonal to them; a quarter of the O(M^3) of one set."""
    X = data[0]
    kernel = Matern52(lengthscales=lengthscales(X))
    Z, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    sets = [gpflow.inducing_variables.InducingPoints(Z[first::2]) for first in range(2)]
    return idm.models.OrthogonalSVGP(
        kernel, likelihood, *sets, num_latent_gps=latents, num_data=len(X)
    )


def blocks(data: Data, num_inducing: int, likelihood: Likelihood, latents: int) -> GPModel:
    """A sum of T smaller models, split by negations of principal components; O(T M^3) a step."""
    X = data[0]
    transforms = idm.transforms.PrincipalNegation.from_data(X, min(X.shape[1], 2))
    kernel = idm.kernels.HarmonicKernel(Matern52(lengthscales=X.shape[1] ** 0.5), transforms)
    each = round(num_inducing / kernel.num_components ** (1 / 3))  # as much work as one model
    Z = idm.inducing_variables.HarmonicInducingPoints.from_data(kernel, X, each)
    return idm.models.AdditiveSVGP(kernel, likelihood, Z, num_latent_gps=latents, num_data=len(X))


def patches(
    data: Data,
    image_shape: tuple[int, ...],
    num_inducing: int,
    likelihood: Likelihood,
    latents: int,
) -> GPModel:
    """Inducing patches of images that have P patches each; O(B P M + M^3) a step."""
    X = data[0]
    base = gpflow.kernels.SquaredExponential(variance=10.0, lengthscales=2.0)
    side = min(5, *image_shape[:2])
    kernel = idm.kernels.Convolutional(base, image_shape=image_shape, patch_shape=(side, side))
    Z = idm.inducing_variables.InducingPatches.from_data(kernel, X, num_inducing)
    return gpflow.models.SVGP(kernel, likelihood, Z, num_latent_gps=latents, num_data=len(X))


def waves(
    data: Data, num_inducing: int, likelihood: Likelihood | None = None, box: Any = None
) -> GPModel:
    """Fourier features of a box, for one to three columns; O(N) once, then O(M^3) a step."""
    X = data[0] if box is None else np.array(box)
    base = Matern32(lengthscales=np.full(X.shape[1], 0.3))
    kernel = idm.kernels.Periodized.from_data(base, X, margin=2)
    features = idm.inducing_variables.BoxFourierFeatures.for_kernel(kernel, num_inducing)
    return sums_over_rows(data, kernel, features, likelihood)


def splines(data: Data, num_splines: list[int], box: Any = None) -> GPModel:
    """B-splines of a grid, sparse, for maps with many details; O(N) once, then O(M^1.5) a step."""
    X = data[0] if box is None else np.array(box)
    base = [Matern32(lengthscales=0.3, active_dims=[k]) for k in range(X.shape[1])]
    for one in base[1:]:
        gpflow.set_trainable(one.variance, False)  # one variance is enough
    product = gpflow.kernels.Product(base) if len(base) > 1 else base[0]
    # The margin leaves room in the box for new rows.
    features = idm.inducing_variables.SplineFeatures.from_data(X, num_splines, degree=2, margin=0.1)
    return sums_over_rows(data, product, features, None)


def neighbours(data: Data, likelihood: Likelihood | None = None) -> GPModel:
    """The nearest m rows, for rough functions, or many rows and little noise; O(N m^3)."""
    return idm.models.VecchiaSGPR(data[:2], likelihood=likelihood, noise_weights=weights_of(data))


def weights_of(data: Data) -> Any:
    """The noise weights of rows (X, Y, weights); None for rows (X, Y)."""
    return data[2] if len(data) > 2 else None


def effects(data: Data, num_inducing: int, categorical: list[int]) -> GPModel:
    """A sum of effects of single columns and of pairs; O(N M^2), once."""
    return idm.tables.fit_additive(data, num_inducing, categorical=categorical).model


def effects_of_all_pairs(
    data: Data, num_inducing: int, categorical: list[int], likelihood: Likelihood
) -> GPModel:
    """A sum of effects of single columns and of pairs; O(N M^2), once."""
    X = data[0]
    wanted = ["main", "pairs"] if X.shape[1] <= 8 else "main"
    table = idm.tables.Additive.from_data(
        X, wanted, categorical=categorical, separate_lengthscales=True
    )
    features = idm.tables.AdditiveFeatures.for_kernel(table, num_inducing)
    return sums_over_rows(data, table, features, likelihood)


def harmonics(data: Data, likelihood: Likelihood | None = None) -> GPModel:
    """Harmonics of all columns together, chosen by the targets; O(N M^2), once."""
    return sums_over_rows(data, *zonal_harmonics(data[0], 2), likelihood)


def harmonics_and_neighbours(data: Data, max_degree: int) -> GPModel:
    """Harmonics, and the nearest m rows for the residuals; O(N M^2 + N m^3)."""
    zonal, features = zonal_harmonics(data[0], max_degree)
    prior = idm.kernels.FiniteRank(zonal, features)
    return idm.models.VecchiaSGPR(data, prior, features)


def effects_and_harmonics(data: Data, num_inducing: int, categorical: list[int]) -> GPModel:
    """Effects of columns and pairs, and harmonics of all columns; O(N M^2)."""
    together = harmonics(data)
    idm.fit(together, num_inducing=num_inducing // 2)
    each = effects(data, num_inducing // 2, categorical)
    features = [each.inducing_variable, together.inducing_variable]
    return idm.models.StructuredSGPR(
        data,
        each.kernel + together.kernel,
        idm.inducing_variables.SumInducingVariables(features),
        likelihood=together.likelihood,
    )


def harmonics_by_minibatches(
    data: Data, num_inducing: int, q_diag: bool, likelihood: Likelihood, latents: int
) -> GPModel:
    """Harmonics on minibatches of B rows, for very many rows; O(B M^2) a step."""
    X = data[0]
    zonal, few = zonal_harmonics(X, 2)
    idm.fit(sums_over_rows(data, zonal, few, likelihood), steps=1)  # scales, from a subset
    features = idm.inducing_variables.SphericalHarmonics.for_data(zonal, X, num_inducing)
    return gpflow.models.SVGP(
        idm.kernels.FiniteRank(zonal, features),
        likelihood,
        features,
        q_diag=q_diag,
        num_latent_gps=latents,
        num_data=len(X),
    )


def globe_exact(data: Data) -> GPModel:
    """An exact GP on the globe: so few rows need no approximation; O(N^3) a step."""
    return gpflow.models.GPR(data, idm.kernels.GlobeMatern52(), noise_variance=0.1)


def globe_neighbours(data: Data, likelihood: Likelihood | None = None) -> GPModel:
    """The nearest m places by great circles, for rough functions, or many rows and little noise;
    O(N m^3)."""
    return idm.models.VecchiaSGPR(
        data[:2], likelihood=likelihood, local_inputs="degrees", noise_weights=weights_of(data)
    )


def globe_harmonics(data: Data, max_degree: int, likelihood: Likelihood | None = None) -> GPModel:
    """Harmonics of the globe, without a seam at the date line or the poles; O(N) once, then O(M^3)
    a step."""
    globe = idm.kernels.GlobeMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(globe, 2, max_degree)
    return sums_over_rows(data, globe, features, likelihood)


def globe_harmonics_and_neighbours(data: Data, max_degree: int) -> GPModel:
    """Harmonics of the globe, and the nearest m places for the residuals; O(N M^2 + N m^3)."""
    globe = idm.kernels.GlobeMatern52()
    features = idm.inducing_variables.SphericalHarmonics.for_kernel(globe, 2, max_degree)
    prior = idm.kernels.FiniteRank(globe, features)
    return idm.models.VecchiaSGPR(data, prior, features, local_inputs="degrees")


def globe_points(data: Data, num_inducing: int, likelihood: Likelihood, latents: int) -> GPModel:
    """GPflow's SVGP with inducing points on the globe, the first model to try; O(M^3) a step."""
    X = data[0]
    kernel = idm.kernels.GlobeMatern52()
    Z, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    return gpflow.models.SVGP(kernel, likelihood, Z, num_latent_gps=latents, num_data=len(X))
