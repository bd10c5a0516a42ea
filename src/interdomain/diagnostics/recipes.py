"""The models that :func:`recommend` knows, each as a user would write it.

The body of each function is what is shown as code: it uses nothing but its arguments and what is
imported here, assigns ``model`` and returns it in the last line; its docstring says when it is
worth a try. X and Y are those of
:class:`~interdomain.diagnostics.prepared.PreparedData`. A function ``..._of_any`` is for any
likelihood, the one without for Gaussian noise.
"""

from __future__ import annotations

from typing import Any

import gpflow
import numpy as np
from scipy.cluster.vq import kmeans2

import interdomain as idm


def exact(X: Any, Y: Any) -> Any:
    """An exact GP: with so few rows nothing has to be approximated."""
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=0.1)
    return model


def points(X: Any, Y: Any, likelihood: Any, num_latent: int, num_inducing: int) -> Any:
    """GPflow's SVGP with inducing points, for any table."""
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    centres, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    model = gpflow.models.SVGP(
        kernel, likelihood, centres, num_latent_gps=num_latent, num_data=len(X)
    )
    return model


def orthogonal_points(X: Any, Y: Any, likelihood: Any, num_latent: int, num_inducing: int) -> Any:
    """Points and points orthogonal to them: cheaper than one set of as many points."""
    kernel = gpflow.kernels.Matern52(lengthscales=np.full(X.shape[1], X.shape[1] ** 0.5))
    centres, _ = kmeans2(X[:10_000], num_inducing, minit="points", seed=0)
    base, orthogonal = centres[::2], centres[1::2]
    model = idm.models.OrthogonalSVGP(
        kernel,
        likelihood,
        gpflow.inducing_variables.InducingPoints(base),
        gpflow.inducing_variables.InducingPoints(orthogonal),
        num_latent_gps=num_latent,
        num_data=len(X),
    )
    return model


def blocks(
    X: Any, Y: Any, likelihood: Any, num_latent: int, num_inducing: int, num_groups: int
) -> Any:
    """A sum of smaller models, split by symmetries that the rows roughly have."""
    transforms = idm.transforms.PrincipalNegation.from_data(X, num_groups)
    base = gpflow.kernels.Matern52(lengthscales=X.shape[1] ** 0.5)
    kernel = idm.kernels.HarmonicKernel(base, transforms)
    each = round(num_inducing / kernel.num_components ** (1 / 3))  # as much work as one model
    inducing_variable = idm.inducing_variables.HarmonicInducingPoints.from_data(kernel, X, each)
    model = idm.models.AdditiveSVGP(
        kernel, likelihood, inducing_variable, num_latent_gps=num_latent, num_data=len(X)
    )
    return model


def harmonics(X: Any, Y: Any) -> Any:
    """Harmonics chosen by the targets: a function of all columns together."""
    zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(zonal, X.shape[1], max_degree=2)
    kernel = idm.kernels.FiniteRank(zonal, few)
    model = idm.models.StructuredSGPR((X, Y), kernel, few, noise_variance=0.1)
    return model


def harmonics_of_any(X: Any, Y: Any, likelihood: Any, num_latent: int) -> Any:
    """Harmonics chosen by the targets: a function of all columns together."""
    zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(zonal, X.shape[1], max_degree=2)
    kernel = idm.kernels.FiniteRank(zonal, few)
    model = idm.models.CollapsedSVGP((X, Y), kernel, likelihood, few, num_latent_gps=num_latent)
    return model


def minibatch_harmonics(
    X: Any, Y: Any, likelihood: Any, num_latent: int, num_inducing: int, q_diag: bool
) -> Any:
    """Harmonics of most prior variance, trained by minibatches: for very many rows."""
    zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(zonal, X.shape[1], max_degree=2)
    kernel = idm.kernels.FiniteRank(zonal, few)
    first = idm.models.CollapsedSVGP((X, Y), kernel, likelihood, few, num_latent_gps=num_latent)
    idm.training.fit_collapsed(first, max_passes=1)  # input scales, on a subset
    chosen = idm.inducing_variables.SphericalHarmonics.for_data(zonal, X, num_inducing)
    model = gpflow.models.SVGP(
        idm.kernels.FiniteRank(zonal, chosen),
        likelihood,
        chosen,
        q_diag=q_diag,
        num_latent_gps=num_latent,
        num_data=len(X),
    )
    return model


def waves(X: Any, Y: Any, num_inducing: int) -> Any:
    """Fourier features of a box, computed once: one to three columns."""
    base = gpflow.kernels.Matern32(lengthscales=np.full(X.shape[1], 0.3))
    box = idm.kernels.Periodized.from_data(base, X, margin=2)
    features = idm.inducing_variables.PeriodicFourierFeatures.for_kernel(box, num_inducing)
    kernel = idm.kernels.FiniteRank(box, features)
    model = idm.models.StructuredSGPR((X, Y), kernel, features, noise_variance=0.1)
    return model


def waves_of_any(X: Any, Y: Any, likelihood: Any, num_latent: int, num_inducing: int) -> Any:
    """Fourier features of a box, computed once: one to three columns."""
    base = gpflow.kernels.Matern32(lengthscales=np.full(X.shape[1], 0.3))
    box = idm.kernels.Periodized.from_data(base, X, margin=2)
    features = idm.inducing_variables.PeriodicFourierFeatures.for_kernel(box, num_inducing)
    kernel = idm.kernels.FiniteRank(box, features)
    model = idm.models.CollapsedSVGP(
        (X, Y), kernel, likelihood, features, num_latent_gps=num_latent
    )
    return model


def globe(X: Any, Y: Any, max_degree: int) -> Any:
    """Harmonics of the globe, without a seam or poles."""
    kernel = idm.kernels.SphericalMatern32(inputs="unit_vectors", lengthscale=0.3)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 3, max_degree)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    model = idm.models.StructuredSGPR((X, Y), prior, harmonics, noise_variance=0.1)
    return model


def globe_of_any(X: Any, Y: Any, likelihood: Any, num_latent: int, max_degree: int) -> Any:
    """Harmonics of the globe, without a seam or poles."""
    kernel = idm.kernels.SphericalMatern32(inputs="unit_vectors", lengthscale=0.3)
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 3, max_degree)
    prior = idm.kernels.FiniteRank(kernel, harmonics)
    model = idm.models.CollapsedSVGP(
        (X, Y), prior, likelihood, harmonics, num_latent_gps=num_latent
    )
    return model


def globe_and_effects(X: Any, Y: Any, max_degree: int, num_inducing: int) -> Any:
    """Harmonics of the globe, and an effect of each other column."""
    kernel = idm.kernels.SphericalMatern32(
        inputs="unit_vectors", lengthscale=0.3, active_dims=[0, 1, 2]
    )
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 3, max_degree)
    others = list(range(3, X.shape[1]))
    table = idm.kernels.Additive.from_data(X[:, 3:], active_dims=others)
    effects = idm.inducing_variables.AdditiveFeatures.for_kernel(table, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, harmonics) + idm.kernels.FiniteRank(table, effects)
    features = idm.inducing_variables.SumInducingVariables([harmonics, effects])
    model = idm.models.StructuredSGPR((X, Y), prior, features, noise_variance=0.1)
    return model


def globe_and_effects_of_any(
    X: Any, Y: Any, likelihood: Any, num_latent: int, max_degree: int, num_inducing: int
) -> Any:
    """Harmonics of the globe, and an effect of each other column."""
    kernel = idm.kernels.SphericalMatern32(
        inputs="unit_vectors", lengthscale=0.3, active_dims=[0, 1, 2]
    )
    harmonics = idm.inducing_variables.SphericalHarmonics.for_kernel(kernel, 3, max_degree)
    others = list(range(3, X.shape[1]))
    table = idm.kernels.Additive.from_data(X[:, 3:], active_dims=others)
    effects = idm.inducing_variables.AdditiveFeatures.for_kernel(table, num_inducing)
    prior = idm.kernels.FiniteRank(kernel, harmonics) + idm.kernels.FiniteRank(table, effects)
    features = idm.inducing_variables.SumInducingVariables([harmonics, effects])
    model = idm.models.CollapsedSVGP((X, Y), prior, likelihood, features, num_latent_gps=num_latent)
    return model


def patches(
    X: Any,
    Y: Any,
    likelihood: Any,
    num_latent: int,
    image_shape: tuple[int, ...],
    num_inducing: int,
) -> Any:
    """Patches of images: what small parts look like, wherever they are."""
    base = gpflow.kernels.SquaredExponential(variance=10.0, lengthscales=2.0)
    side = min(5, *image_shape[:2])
    kernel = idm.kernels.Convolutional(base, image_shape=image_shape, patch_shape=(side, side))
    some = idm.inducing_variables.InducingPatches.from_data(kernel, X, num_inducing)
    model = gpflow.models.SVGP(kernel, likelihood, some, num_latent_gps=num_latent, num_data=len(X))
    return model


def effects(X: Any, Y: Any, num_inducing: int, categorical: list[int]) -> Any:
    """A sum of effects of single columns and of pairs."""
    fit = idm.tables.fit_additive((X, Y), num_inducing, categorical=categorical)
    model = fit.model
    return model


def effects_and_harmonics(X: Any, Y: Any, num_inducing: int, categorical: list[int]) -> Any:
    """Effects of single columns and of pairs, and harmonics of all columns."""
    half = num_inducing // 2
    effects = idm.tables.fit_additive((X, Y), half, categorical=categorical).model
    zonal = idm.kernels.SphericalMatern52(weight_variances=np.ones(X.shape[1]))
    few = idm.inducing_variables.SphericalHarmonics.for_kernel(zonal, X.shape[1], max_degree=2)
    harmonics = idm.models.StructuredSGPR(
        (X, Y), idm.kernels.FiniteRank(zonal, few), few, noise_variance=0.1
    )
    idm.training.fit_sgpr(harmonics, num_inducing=half)
    features = [effects.inducing_variable, harmonics.inducing_variable]
    model = idm.models.StructuredSGPR(
        (X, Y),
        effects.kernel + harmonics.kernel,
        idm.inducing_variables.SumInducingVariables(features),
        likelihood=harmonics.likelihood,
    )
    return model


def effects_of_any(
    X: Any, Y: Any, likelihood: Any, num_latent: int, num_inducing: int, categorical: list[int]
) -> Any:
    """A sum of effects of single columns and of pairs."""
    wanted = ["main", "pairs"] if X.shape[1] <= 8 else "main"
    table = idm.kernels.Additive.from_data(
        X, wanted, categorical=categorical, separate_lengthscales=True
    )
    features = idm.inducing_variables.AdditiveFeatures.for_kernel(table, num_inducing)
    kernel = idm.kernels.FiniteRank(table, features)
    model = idm.models.CollapsedSVGP(
        (X, Y), kernel, likelihood, features, num_latent_gps=num_latent
    )
    return model


WITHOUT_DATA = (points, orthogonal_points, blocks, minibatch_harmonics, patches)
"""Models that are given their rows in training."""
